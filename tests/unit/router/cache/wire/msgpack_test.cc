// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/wire/msgpack.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::wire {
namespace {

using Kind = MsgpackReader::Kind;

Bytes hex(std::string_view digits) { return from_hex(digits).value(); }

TEST(Msgpack, ReadsIntegersOfEveryWidth) {
  struct Case {
    const char* bytes;
    std::uint64_t want_bits;
    bool want_negative;
  };
  const auto minus = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  for (const auto& test : {
           Case{"00", 0, false},
           Case{"7f", 127, false},
           Case{"ff", minus(-1), true},
           Case{"e0", minus(-32), true},
           Case{"ccff", 255, false},
           Case{"cdff01", 0xff01, false},
           Case{"ceffffffff", 0xffffffff, false},
           Case{"cfdab7c3d2a1908f01", 0xdab7c3d2a1908f01, false},
           Case{"d0fc", minus(-4), true},
           Case{"d17fff", 0x7fff, false},
           Case{"d2ffffffff", minus(-1), true},
           Case{"d3dab7e81ae93e2f01", 0xdab7e81ae93e2f01, true},
           Case{"d30000000000000005", 5, false},
       }) {
    SCOPED_TRACE(test.bytes);
    const auto bytes = hex(test.bytes);
    MsgpackReader reader(bytes);
    EXPECT_EQ(reader.peek(), Kind::Integer);
    const auto value = reader.integer();
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(value->bits, test.want_bits);
    EXPECT_EQ(value->negative, test.want_negative);
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(Msgpack, ReadsNumbersOfEveryKind) {
  for (const auto* bytes : {"cb3ff8000000000000", "ca3fc00000"}) {
    const auto source = hex(bytes);
    EXPECT_EQ(MsgpackReader(source).number(), 1.5);
  }
  const auto whole = hex("d0fc");
  EXPECT_EQ(MsgpackReader(whole).number(), -4.0);
}

TEST(Msgpack, ReadsTextAndBinaryOfEveryLengthForm) {
  for (const auto* bytes : {"a3616263", "d903616263", "da0003616263", "db00000003616263"}) {
    const auto source = hex(bytes);
    MsgpackReader reader(source);
    EXPECT_EQ(reader.text(), "abc");
    EXPECT_TRUE(reader.at_end());
  }
  for (const auto* bytes : {"c403616263", "c50003616263", "c600000003616263"}) {
    const auto source = hex(bytes);
    MsgpackReader reader(source);
    const auto binary = reader.binary();
    ASSERT_TRUE(binary.has_value());
    EXPECT_EQ(text_of(*binary), "abc");
  }
}

TEST(Msgpack, RefusesLengthsAndCountsThatTheBytesCannotHold) {
  for (const auto* bytes : {"a461", "d9ff61", "dbffffffff61"}) {
    const auto source = hex(bytes);
    EXPECT_FALSE(MsgpackReader(source).text().has_value()) << bytes;
  }
  for (const auto* bytes : {"c4ff61", "c6ffffffff61", "c5"}) {
    const auto source = hex(bytes);
    EXPECT_FALSE(MsgpackReader(source).binary().has_value()) << bytes;
  }
  for (const auto* bytes : {"9200", "dcffff00", "ddffffffff00", "dd00"}) {
    const auto source = hex(bytes);
    EXPECT_FALSE(MsgpackReader(source).array().has_value()) << bytes;
  }
  for (const auto* bytes : {"8100", "deffff0000", "dfffffffff0000"}) {
    const auto source = hex(bytes);
    EXPECT_FALSE(MsgpackReader(source).map().has_value()) << bytes;
  }
}

TEST(Msgpack, ReadsOfAnotherKindGiveNothing) {
  const auto text = hex("a161");
  EXPECT_FALSE(MsgpackReader(text).integer().has_value());
  EXPECT_FALSE(MsgpackReader(text).number().has_value());
  EXPECT_FALSE(MsgpackReader(text).array().has_value());
  EXPECT_FALSE(MsgpackReader(text).map().has_value());
  EXPECT_FALSE(MsgpackReader(text).binary().has_value());
  EXPECT_FALSE(MsgpackReader(text).nil());
  const auto number = hex("05");
  EXPECT_FALSE(MsgpackReader(number).text().has_value());
  const Bytes none;
  EXPECT_EQ(MsgpackReader(none).peek(), Kind::End);
  EXPECT_FALSE(MsgpackReader(none).integer().has_value());
}

TEST(Msgpack, SkipsOneValueOfAnyShapeAndReturnsItsBytes) {
  for (const auto* bytes : {"c0",
                            "c2",
                            "c3",
                            "05",
                            "e0",
                            "cd0102",
                            "ca3fc00000",
                            "cb3ff8000000000000",
                            "a3616263",
                            "c403616263",
                            "93010203",
                            "92c0920102",
                            "81a16105",
                            "82a16192010202c0",
                            "d40501",
                            "d6050102"
                            "0304",
                            "d8050102030405060708090a0b0c0d0e0f10",
                            "c7020501ff",
                            "dc00020102",
                            "de000101a162",
                            "90",
                            "80",
                            "9190"}) {
    auto source = hex(bytes);
    const auto size = source.size();
    source.push_back(0x2a);
    MsgpackReader reader(source);
    const auto value = reader.skip(4);
    ASSERT_TRUE(value.has_value()) << bytes;
    EXPECT_EQ(value->size(), size) << bytes;
    EXPECT_EQ(reader.integer()->bits, 0x2aU);
  }
}

TEST(Msgpack, SkipRefusesWhatIsCutShortReservedOrTooDeep) {
  for (const auto* bytes : {"", "c1", "9201", "81a161", "d405", "c7ff05", "c9ffffffff05", "cb00"}) {
    const auto source = hex(bytes);
    EXPECT_FALSE(MsgpackReader(source).skip(8).has_value()) << bytes;
  }
  const auto nested = hex("919191c0");
  EXPECT_TRUE(MsgpackReader(nested).skip(3).has_value());
  EXPECT_FALSE(MsgpackReader(nested).skip(2).has_value());
  const Bytes abyss(1'000'000, 0x91);
  EXPECT_FALSE(MsgpackReader(abyss).skip(8).has_value());
}

TEST(Msgpack, SurvivesRandomBytes) {
  Rng rng(11);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes(rng.below(40));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
    MsgpackReader reader(bytes);
    std::size_t consumed = 0;
    while (const auto value = reader.skip(8)) consumed += value->size();
    EXPECT_LE(consumed, bytes.size());
  }
}

}  // namespace
}  // namespace sightline::wire
