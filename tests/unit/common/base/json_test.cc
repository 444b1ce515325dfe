// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/json.h"

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

}  // namespace
}  // namespace sightline::json
