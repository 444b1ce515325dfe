// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/address_guard.h"

#include <array>

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace sightline::media {
namespace {

AddressKind kind_of(const char* text) {
  std::array<std::uint8_t, 16> address{};
  if (inet_pton(AF_INET, text, address.data()) == 1) return kind_of_address({address.data(), 4});
  EXPECT_EQ(inet_pton(AF_INET6, text, address.data()), 1) << text;
  return kind_of_address(address);
}

bool is_public(const char* text) { return kind_of(text) == AddressKind::Public; }

TEST(AddressGuard, PrivateAddressesAreRefused) {
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
                           "::8.8.8.8",
                           "::ffff:0:8.8.8.8",
                           "::7f00:1",
                           "64:ff9b::7f00:1",
                           "64:ff9b::a00:1",
                           "64:ff9b:0:0:0:1:808:808",
                           "64:ff9b:1::1",
                           "64:ff9b:1::",
                           "64:ff9b:1::a00:1",
                           "64:ff9b:1:a00:0:100::",
                           "64:ff9b:1:a:0:1::",
                           "64:ff9b:1:0:a:0:100:0",
                           "100::1",
                           "2001::1",
                           "2001:0:a00:1::f7f7:f7f7",
                           "2001:0:808:808::f5ff:fffe",
                           "2001:4860::5efe:a00:1",
                           "2001:4860::200:5efe:a00:1",
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

TEST(AddressGuard, EmbeddedIpv4AddressDecidesTheKind) {
  for (const char* text : {"::ffff:8.8.8.8", "64:ff9b::808:808", "64:ff9b:1::808:808",
                           "64:ff9b:1:808:8:800::", "64:ff9b:1:8:8:808::", "2002:808:808::1",
                           "2001:0:808:808::f7f7:f7f7", "2001:4860::5efe:808:808"}) {
    EXPECT_TRUE(is_public(text)) << text;
  }
}

TEST(AddressGuard, MetadataServicesAreFoundInEveryForm) {
  for (const char* text : {"169.254.169.254",
                           "169.254.170.2",
                           "169.254.170.23",
                           "168.63.129.16",
                           "100.100.100.200",
                           "192.0.0.192",
                           "169.254.0.23",
                           "169.254.42.42",
                           "192.80.8.124",
                           "fd00:ec2::254",
                           "fd00:ec2::23",
                           "fd20:ce::254",
                           "fd00:42::42",
                           "fe80::a9fe:a9fe",
                           "::ffff:169.254.169.254",
                           "64:ff9b::a9fe:a9fe",
                           "64:ff9b:1::a83f:8110",
                           "64:ff9b:1:a9fe:a9:fe00::",
                           "2002:a9fe:a9fe::1",
                           "2001:0:808:808::5601:5601",
                           "2001:4860::5efe:a9fe:a9fe"}) {
    EXPECT_EQ(kind_of(text), AddressKind::Metadata) << text;
  }
  for (const char* text : {"169.254.168.254", "169.254.171.1", "168.63.129.17", "100.100.100.201",
                           "fd00:ec3::254", "fe80::1", "127.0.0.1", "10.0.0.1"}) {
    EXPECT_NE(kind_of(text), AddressKind::Metadata) << text;
  }
}

TEST(AddressGuard, OtherLengthsAreRefused) {
  const std::array<std::uint8_t, 16> address{8, 8, 8, 8};
  for (const std::size_t length : {0U, 1U, 3U, 5U, 15U}) {
    EXPECT_EQ(kind_of_address({address.data(), length}), AddressKind::Private) << length;
  }
}

}  // namespace
}  // namespace sightline::media
