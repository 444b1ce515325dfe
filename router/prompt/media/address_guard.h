// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/bytes.h"

namespace sightline::media {

// The kinds of hosts that an IP address leads to. A later kind is more dangerous than an earlier
// one.
enum class AddressKind : std::uint8_t {
  // A host on the public internet.
  Public,
  // A host that may be inside the operator's network. This is every address that has no other kind,
  // and every address of a wrong length.
  Private,
  // A service of a cloud for its own machines, which gives out credentials, user data or bootstrap
  // scripts. It serves no image for a client. The router rejects it even with
  // media.allow_private_addresses.
  Metadata,
};

// Returns the kind of an address, which has 4 bytes (IPv4) or 16 bytes (IPv6) in network order.
// Pure.
//
// Private addresses are all ranges of the IANA special-purpose registries (RFC 6890 and its
// successors): unspecified, loopback, private, shared (RFC 6598), link-local, unique-local,
// multicast, reserved, documentation and benchmark ranges.
//
// An IPv6 address that contains an IPv4 address has the kind of that address:
// - mapped addresses (RFC 4291),
// - NAT64 in 64:ff9b::/96 (RFC 6052),
// - NAT64 in 64:ff9b:1::/48 (RFC 8215). The worst kind counts of all places where a translator may
//   read the IPv4 address.
// - 6to4 (RFC 3056),
// - Teredo (RFC 4380), where the server and the client both count,
// - ISATAP (RFC 5214), also within another range.
//
// A NAT64 translator may use a prefix of its own operator. These addresses look like those of any
// other host.
AddressKind kind_of_address(ByteView address);

}  // namespace sightline::media
