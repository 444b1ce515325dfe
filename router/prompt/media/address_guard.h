// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/bytes.h"

namespace sightline::media {

// True if an address (4 bytes of IPv4 or 16 of IPv6, network order) belongs to a host on the
// public internet. False for every range of the IANA special-purpose registries (RFC 6890 and
// successors) that could lead inside: unspecified, loopback, private, shared (RFC 6598),
// link-local, unique-local, multicast, reserved, documentation and benchmark ranges, and for the
// IPv6 ranges that carry an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo). False for
// other lengths.
bool is_public_address(ByteView address);

}  // namespace sightline::media
