// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/address_guard.h"

#include <array>

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace sightline::media {
namespace {

bool is_public(const char* text) {
  std::array<std::uint8_t, 16> address{};
  if (inet_pton(AF_INET, text, address.data()) == 1) return is_public_address({address.data(), 4});
  EXPECT_EQ(inet_pton(AF_INET6, text, address.data()), 1) << text;
  return is_public_address(address);
}

TEST(AddressGuard, AddressesThatLeadInsideAreRefused) {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.254",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.1",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::ffff:127.0.0.1",
                           "::ffff:8.8.8.8",
                           "::7f00:1",
                           "64:ff9b::7f00:1",
                           "64:ff9b::808:808",
                           "64:ff9b:1::1",
                           "100::1",
                           "2001::1",
                           "2001:db8::1",
                           "2002:7f00:1::1",
                           "3fff::1",
                           "fc00::1",
                           "fd12:3456::1",
                           "fe80::1",
                           "fec0::1",
                           "ff02::1"}) {
    EXPECT_FALSE(is_public(text)) << text;
  }
}

TEST(AddressGuard, NeighboursOfThoseRangesArePublic) {
  for (const char* text :
       {"1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.0.0.1",
        "128.0.0.1", "169.253.1.1", "169.255.0.1", "172.15.255.255", "172.32.0.1", "192.167.1.1",
        "192.169.0.1", "198.17.255.255", "198.20.0.1", "223.255.255.254", "2001:4860:4860::8888",
        "2606:4700::1111", "2a00:1450::1"}) {
    EXPECT_TRUE(is_public(text)) << text;
  }
}

TEST(AddressGuard, OtherLengthsAreRefused) {
  const std::array<std::uint8_t, 16> address{8, 8, 8, 8};
  for (const std::size_t length : {0U, 1U, 3U, 5U, 15U}) {
    EXPECT_FALSE(is_public_address({address.data(), length})) << length;
  }
}

}  // namespace
}  // namespace sightline::media
