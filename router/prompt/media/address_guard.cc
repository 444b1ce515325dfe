// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/address_guard.h"

#include <algorithm>
#include <array>

namespace sightline::media {
namespace {

struct AddressRange {
  std::array<std::uint8_t, 16> prefix;
  unsigned bits;
};

// The IANA IPv4 Special-Purpose Address Registry, multicast and the former class E.
constexpr std::array<AddressRange, 16> kPrivateIpv4{{{{0}, 8},
                                                     {{10}, 8},
                                                     {{100, 64}, 10},
                                                     {{127}, 8},
                                                     {{169, 254}, 16},
                                                     {{172, 16}, 12},
                                                     {{192, 0, 0}, 24},
                                                     {{192, 0, 2}, 24},
                                                     {{192, 31, 196}, 24},
                                                     {{192, 88, 99}, 24},
                                                     {{192, 168}, 16},
                                                     {{198, 18}, 15},
                                                     {{198, 51, 100}, 24},
                                                     {{203, 0, 113}, 24},
                                                     {{224}, 4},
                                                     {{240}, 4}}};

// Addresses that clouds document. 169.254.169.254 exists in nearly all clouds. AWS uses its
// neighbours for time, names and the credentials of containers and pods. The others belong to
// Tencent, Scaleway, Alibaba, Azure, Oracle and Equinix.
constexpr std::array<AddressRange, 8> kMetadataIpv4{{{{169, 254, 169}, 24},
                                                     {{169, 254, 170}, 24},
                                                     {{169, 254, 0, 23}, 32},
                                                     {{169, 254, 42, 42}, 32},
                                                     {{100, 100, 100, 200}, 32},
                                                     {{168, 63, 129, 16}, 32},
                                                     {{192, 0, 0, 192}, 32},
                                                     {{192, 80, 8, 124}, 32}}};

// The IANA IPv6 Special-Purpose Address Registry within 2000::/3. All addresses outside of 2000::/3
// are private.
constexpr std::array<AddressRange, 4> kPrivateIpv6{
    {{{0x20, 0x01, 0x00}, 23},        // protocol assignments
     {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
     {{0x3f, 0xff, 0x00}, 20},        // documentation
     {{0x3f, 0xfe}, 16}}};            // former 6bone

// AWS (fd00:ec2::/32), Google (fd20:ce::254), Scaleway (fd00:42::42) and OpenStack
// (fe80::a9fe:a9fe).
constexpr std::array<AddressRange, 4> kMetadataIpv6{
    {{{0xfd, 0x00, 0x0e, 0xc2}, 32},
     {{0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128},
     {{0xfd, 0x00, 0x00, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x42}, 128},
     {{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa9, 0xfe, 0xa9, 0xfe}, 128}}};

// Ranges of IPv6 addresses that contain an IPv4 address.
constexpr AddressRange kMapped{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};
constexpr AddressRange kNat64{{0x00, 0x64, 0xff, 0x9b}, 96};
constexpr AddressRange kLocalNat64{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48};
constexpr AddressRange kTeredo{{0x20, 0x01, 0x00, 0x00}, 32};
constexpr AddressRange k6to4{{0x20, 0x02}, 16};

bool is_within(ByteView address, const AddressRange& range) {
  for (unsigned bit = 0; bit < range.bits; bit += 8) {
    const unsigned left = range.bits - bit;
    const auto mask = static_cast<std::uint8_t>(left >= 8 ? 0xFFU : 0xFFU << (8 - left));
    if (((address[bit / 8] ^ range.prefix[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

template <std::size_t Count>
bool is_within_any(ByteView address, const std::array<AddressRange, Count>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [address](const AddressRange& range) { return is_within(address, range); });
}

// Metadata comes first, because most of its addresses lie in private ranges.
AddressKind kind_of_ipv4(ByteView address) {
  if (is_within_any(address, kMetadataIpv4)) return AddressKind::Metadata;
  return is_within_any(address, kPrivateIpv4) ? AddressKind::Private : AddressKind::Public;
}

AddressKind worse(AddressKind a, AddressKind b) { return std::max(a, b); }

bool is_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

// Returns the worst kind of all IPv4 addresses that a translator may read. The place of the IPv4
// address depends on the length of the translator's prefix (RFC 6052 section 2.2). The address does
// not show this length. The bytes after the IPv4 address must be zero, and this excludes some
// places.
AddressKind kind_of_local_nat64(ByteView a) {
  AddressKind kind = AddressKind::Public;
  const auto also = [&](std::array<std::uint8_t, 4> ipv4) {
    kind = worse(kind, kind_of_ipv4(ipv4));
  };
  if (is_zero(a.subspan(11))) also({a[6], a[7], a[9], a[10]});    // /48
  if (is_zero(a.subspan(12))) also({a[7], a[9], a[10], a[11]});   // /56
  if (is_zero(a.subspan(13))) also({a[9], a[10], a[11], a[12]});  // /64
  if (!is_zero(a.subspan(12))) also({a[12], a[13], a[14], a[15]});
  return kind;
}

// The client's address is stored with all bits inverted (RFC 4380 section 4).
AddressKind kind_of_teredo(ByteView a) {
  std::array<std::uint8_t, 4> client{};
  for (std::size_t i = 0; i < 4; ++i) client[i] = static_cast<std::uint8_t>(~a[12 + i]);
  return worse(kind_of_ipv4(a.subspan(4, 4)), kind_of_ipv4(client));
}

// The interface identifier is 0000:5efe or 0200:5efe, followed by the IPv4 address (RFC 5214
// section 6.1).
bool is_isatap(ByteView a) {
  return (a[8] & 0xFDU) == 0 && a[9] == 0 && a[10] == 0x5E && a[11] == 0xFE;
}

AddressKind kind_of_ipv6(ByteView address) {
  if (is_within_any(address, kMetadataIpv6)) return AddressKind::Metadata;
  // Addresses of these ranges lead to an IPv4 host. Its address decides.
  if (is_within(address, kMapped) || is_within(address, kNat64)) {
    return kind_of_ipv4(address.subspan(12));
  }
  if (is_within(address, kLocalNat64)) return kind_of_local_nat64(address);
  if (is_within(address, kTeredo)) return kind_of_teredo(address);
  if (is_within(address, k6to4)) return kind_of_ipv4(address.subspan(2, 4));
  const bool is_global = (address[0] & 0xE0U) == 0x20U;
  const bool is_private = !is_global || is_within_any(address, kPrivateIpv6);
  const AddressKind kind = is_private ? AddressKind::Private : AddressKind::Public;
  // ISATAP addresses exist below any prefix. Both the prefix and the IPv4 address must be allowed.
  return is_isatap(address) ? worse(kind, kind_of_ipv4(address.subspan(12))) : kind;
}

}  // namespace

AddressKind kind_of_address(ByteView address) {
  if (address.size() == 4) return kind_of_ipv4(address);
  return address.size() == 16 ? kind_of_ipv6(address) : AddressKind::Private;
}

}  // namespace sightline::media
