// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/bytes.h"

namespace sightline::media {

// Whose host an address (4 bytes of IPv4 or 16 of IPv6, network order) leads to.
enum class AddressKind : std::uint8_t {
  Public,   // on the public internet
  Private,  // perhaps inside: everything that is neither of the others, and other lengths
  // A cloud's service for the machine itself (credentials, user data, bootstrap): nobody's picture,
  // also where private addresses are allowed.
  Metadata,
};

// Private are all ranges of the IANA special-purpose registries (RFC 6890 and successors):
// unspecified, loopback, private, shared (RFC 6598), link-local, unique-local, multicast, reserved,
// documentation and benchmark ranges. An IPv6 address that carries an IPv4 address is what the
// address in it is: mapped (RFC 4291), NAT64 (64:ff9b::/96 of RFC 6052 and 64:ff9b:1::/48 of RFC
// 8215, where every place counts at which a translator may read it), 6to4 (RFC 3056) and Teredo
// (RFC 4380), whose server and client both count; ISATAP (RFC 5214) within another range too.
// A translator with a prefix of its own cannot be told from any other host.
AddressKind kind_of_address(ByteView address);

}  // namespace sightline::media
