// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/json.h"

#include <vector>

#include <gtest/gtest.h>

namespace sightline::json {
namespace {

Document parsed(std::string text) {
  auto document = Document::parse(std::move(text));
  EXPECT_TRUE(document.ok()) << document.error().message;
  return std::move(document).value();
}

TEST(Json, ReadsEveryKindWithItsExactSourceText) {
  const Document d = parsed(
      R"( { "a" : [1, -2.5e3 , true,false, null ] , "s":"x\n\u00e9\ud83d\ude00" , "o":{}} )");
  const Value root = d.root();
  ASSERT_EQ(root.size(), 3U);
  const Value array = root.find("a").value();
  EXPECT_EQ(array.raw(), "[1, -2.5e3 , true,false, null ]");
  std::vector<Value> items;
  for (const Value item : array) items.push_back(item);
  ASSERT_EQ(items.size(), 5U);
  EXPECT_EQ(items[0].integer(), 1);
  EXPECT_EQ(items[1].raw(), "-2.5e3");
  EXPECT_FALSE(items[1].integer().has_value());
  EXPECT_EQ(items[1].number(), -2500.0);
  EXPECT_EQ(items[2].boolean(), true);
  EXPECT_EQ(items[3].boolean(), false);
  EXPECT_TRUE(items[4].is(Kind::Null));
  EXPECT_EQ(root.find("s")->string(), "x\né😀");
  EXPECT_EQ(root.find("s")->raw(), R"("x\n\u00e9\ud83d\ude00")");
  EXPECT_EQ(root.find("o")->raw(), "{}");
  EXPECT_EQ(root.raw().front(), '{');
  EXPECT_EQ(root.raw().back(), '}');
  EXPECT_EQ(d.text().substr(root.find("s")->name_offset(), 3), "\"s\"");
}

TEST(Json, AStringWithoutEscapesIsAViewOfTheText) {
  const Document d = parsed(R"({"url":"data:image/png;base64,AAAA"})");
  const std::string_view url = d.root().find("url")->string().value();
  EXPECT_GE(url.data(), d.text().data());
  EXPECT_LT(url.data(), d.text().data() + d.text().size());
}

TEST(Json, ValuesStayValidWhenTheDocumentMoves) {
  Document d = parsed(R"({"k":"v"})");
  const Value root = d.root();
  const Document moved = std::move(d);
  EXPECT_EQ(root.find("k")->string(), "v");
}

TEST(Json, OfDuplicateNamesTheLastCountsAsInPython) {
  const Document d = parsed(R"({"k":1,"k":2})");
  EXPECT_EQ(d.root().find("k")->integer(), 2);
  EXPECT_EQ(d.root().find_all("k").size(), 2U);
}

TEST(Json, EscapedNamesAreFound) {
  const Document d = parsed(R"({"u\u0075id":"x","a\"b":1})");
  EXPECT_TRUE(d.root().find("uuid").has_value());
  EXPECT_TRUE(d.root().find("a\"b").has_value());
}

TEST(Json, MalformedTextIsRefusedWithoutACrash) {
  for (const char* text : {"",
                           "{",
                           "[",
                           "{\"a\"}",
                           "{\"a\":}",
                           "[1,]",
                           "[1 2]",
                           "[\"a\" \"b\"]",
                           "[\"a\":1]",
                           "[\"a\" : 5 }]",
                           "{\"a\":\"b\":1}",
                           "nul",
                           "{\"a\":tru}",
                           "[01]",
                           "[1.]",
                           "[-]",
                           "[\"\\x\"]",
                           "[\"\\ud800\"]",
                           "[\"\\udc00\\ud800\"]",
                           "[\"\\u12\"]",
                           "{} {}",
                           "{}x",
                           "[\"a\nb\"]",
                           "[\"\xff\"]",
                           "\"text\"",
                           "12",
                           "[1]]",
                           "{\"a\":1,}",
                           "{1:2}",
                           "[truex]",
                           "[nul]",
                           "[nulx]",
                           "{\"a\":nulll}",
                           "[n]",
                           "[null",
                           "[tru",
                           "[f]"}) {
    EXPECT_FALSE(Document::parse(text).ok()) << text;
  }
}

TEST(Json, DepthAndCountAreBounded) {
  EXPECT_EQ(Document::parse(std::string(100, '[') + std::string(100, ']')).error().code,
            ErrorCode::TooLarge);
  EXPECT_EQ(Document::parse("[1,2,3,4]", {.depth_max = 9, .values_max = 3}).error().code,
            ErrorCode::TooLarge);
}

TEST(Json, QuotedTextReadsBackAsItself) {
  const std::string text = std::string("a\"\\\n\r\t\b\f") + '\x01' + "é😀/";
  const Document d = parsed("[" + to_quoted(text) + "]");
  EXPECT_EQ((*d.root().begin()).string(), text);
}

Inside inside_of(std::string_view name) {
  if (name == "kept") return Inside::Kept;
  return name == "first" ? Inside::First : Inside::Dropped;
}

Document parsed_partly(std::string text) {
  auto document = Document::parse(std::move(text), {.inside_of = inside_of});
  EXPECT_TRUE(document.ok()) << document.error().message;
  return std::move(document).value();
}

TEST(Json, WhatIsDroppedKeepsKindSizeAndText) {
  const Document d = parsed_partly(
      R"({"kept":[1,[2]],"other":{"a":[1,2],"b":"\n"} ,"first":["x\n",{"y":1}, 3 ],"end":"\t"})");
  EXPECT_EQ(d.root().size(), 4U);
  EXPECT_EQ(d.root().find("kept")->size(), 2U);
  EXPECT_EQ((*++d.root().find("kept")->begin()).size(), 1U);
  const Value other = *d.root().find("other");
  EXPECT_EQ(other.raw(), R"({"a":[1,2],"b":"\n"})");
  EXPECT_EQ(other.size(), 2U);
  EXPECT_FALSE(other.find("a").has_value());
  const Value first = *d.root().find("first");
  EXPECT_EQ(first.size(), 3U);
  EXPECT_EQ((*first.begin()).string(), "x\n");
  EXPECT_EQ(first.raw(), R"(["x\n",{"y":1}, 3 ])");
  EXPECT_EQ(d.root().find("end")->string(), "\t");
  EXPECT_EQ(d.value_count(), 16U);
  EXPECT_EQ(d.kept_count(), 9U);
}

TEST(Json, WhatIsDroppedIsCheckedAsAllIs) {
  for (const char* text : {R"({"x":[1,}])", R"({"x":[01]})", R"({"x":["\ud800"]})",
                           R"({"first":[1,nul]})", R"({"x":{"a":1,}})", R"({"x":["\q"]})"}) {
    EXPECT_FALSE(Document::parse(text, {.inside_of = inside_of}).ok()) << text;
  }
  const std::string deep = R"({"x":)" + std::string(100, '[') + std::string(100, ']') + "}";
  EXPECT_FALSE(Document::parse(deep, {.inside_of = inside_of}).ok());
  EXPECT_EQ(
      Document::parse(R"({"x":[1,2,3]})", {.values_max = 4, .inside_of = inside_of}).error().code,
      ErrorCode::TooLarge);
}

TEST(Json, DroppingLaterLeavesTheRootsMembersAndTheValuesNamed) {
  Document d = parsed(R"({"a":[{"u":"é","p":[1,{"q":"\n"}]},2],"b":{"c":1},"d":3})");
  Value part = *d.root().find("a")->begin();
  Value inner = *part.find("p");
  EXPECT_GT(d.drop_but(std::vector<Value*>{&part, &inner}), 0U);
  EXPECT_EQ(d.root().size(), 3U);
  EXPECT_EQ(d.root().find("d")->integer(), 3);
  EXPECT_EQ(d.root().find("b")->raw(), R"({"c":1})");
  EXPECT_FALSE(d.root().find("b")->find("c").has_value());
  EXPECT_EQ(part.find("u")->string(), "é");
  EXPECT_EQ((*++part.find("p")->begin()).find("q")->string(), "\n");
  EXPECT_EQ((*++inner.begin()).find("q")->string(), "\n");
  EXPECT_EQ(inner.raw(), R"([1,{"q":"\n"}])");
}

TEST(Json, AMemberOfTheRootThatIsNamedStaysWhole) {
  Document d = parsed(R"({"a":[1,2],"b":{"c":[3,{"d":4}]},"a":[5],"e":[6]})");
  Value b = *d.root().find("b");
  EXPECT_GT(d.drop_but(std::vector<Value*>{&b}), 0U);
  EXPECT_EQ(d.root().find_all("a").size(), 2U);
  EXPECT_EQ(d.root().find("e")->size(), 1U);
  for (const Value& whole : {b, *d.root().find("b")}) {
    EXPECT_EQ((*++whole.find("c")->begin()).find("d")->integer(), 4);
  }
}

TEST(Json, IntegersAreReadFromAnArrayThatWasDropped) {
  const auto read = [](const std::string& array) {
    const Document d = parsed_partly(R"({"x":)" + array + "}");
    return unsigned_integers(*d.root().find("x"));
  };
  EXPECT_EQ(read("[ 1,\n20 ,4294967295]"), (std::vector<std::uint32_t>{1, 20, 4294967295U}));
  EXPECT_EQ(read("[]"), std::vector<std::uint32_t>{});
  EXPECT_EQ(read("[ ]"), std::vector<std::uint32_t>{});
  for (const char* other : {"[1,-2]", "[4294967296]", "[1.0]", "[1e2]", "[\"1\"]", "[[1]]",
                            "[null]", "{\"a\":1}", "7"}) {
    EXPECT_FALSE(read(other).has_value()) << other;
  }
}

TEST(Json, MemoryOfADocumentIsChargedAndBounded) {
  std::string text = R"({"kept":[0)";
  for (int i = 1; i < 100'000; ++i) text += ",0";
  text += "]}";
  ByteBudget ample(std::size_t{64} << 20U);
  HeldBytes held(&ample);
  const auto document = Document::parse(text, {.memory = &held});
  ASSERT_TRUE(document.ok());
  EXPECT_GE(held.bytes(), 100'000U * 36);
  EXPECT_LE(held.bytes(), 2 * 100'000U * 40);

  ByteBudget scarce(1'000'000);
  HeldBytes none(&scarce);
  const auto refused = Document::parse(text, {.memory = &none});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::TooLarge);

  HeldBytes dropped(&scarce);
  const auto light =
      Document::parse(R"({"x":)" + text.substr(8), {.inside_of = inside_of, .memory = &dropped});
  ASSERT_TRUE(light.ok()) << light.error().message;
  EXPECT_LE(dropped.bytes(), 10'000U);
}

}  // namespace
}  // namespace sightline::json
