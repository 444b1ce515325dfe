// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/address_guard.h"

#include <array>

namespace sightline::media {
namespace {

struct Range {
  std::array<std::uint8_t, 16> prefix;
  unsigned bits;
};

// IANA IPv4 Special-Purpose Address Registry, plus multicast and the former class E.
constexpr std::array<Range, 16> kIpv4{{{{0}, 8},
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

// Outside 2000::/3 nothing is public; within it, the IANA IPv6 Special-Purpose Address Registry.
constexpr std::array<Range, 6> kIpv6{{{{0x20, 0x01, 0x00, 0x00}, 32},  // Teredo
                                      {{0x20, 0x01, 0x00}, 23},        // protocol assignments
                                      {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
                                      {{0x20, 0x02}, 16},              // 6to4
                                      {{0x3f, 0xff, 0x00}, 20},        // documentation
                                      {{0x3f, 0xfe}, 16}}};            // former 6bone

bool is_within(ByteView address, const Range& range) {
  for (unsigned bit = 0; bit < range.bits; bit += 8) {
    const unsigned left = range.bits - bit;
    const auto mask = static_cast<std::uint8_t>(left >= 8 ? 0xFFU : 0xFFU << (8 - left));
    if (((address[bit / 8] ^ range.prefix[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

}  // namespace

bool is_public_address(ByteView address) {
  if (address.size() == 4) {
    for (const Range& range : kIpv4) {
      if (is_within(address, range)) return false;
    }
    return true;
  }
  if (address.size() != 16 || (address[0] & 0xE0U) != 0x20U) return false;
  for (const Range& range : kIpv6) {
    if (is_within(address, range)) return false;
  }
  return true;
}

}  // namespace sightline::media
