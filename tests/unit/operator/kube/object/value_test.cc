// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/object/value.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::object {
namespace {

Value parsed(const std::string& text) {
  auto list = Value::parse("[" + text + "]");
  EXPECT_TRUE(list.ok()) << text;
  return list.ok() ? list->items().at(0) : Value();
}

TEST(Value, AnyOrderOfMembersGivesOneValueAndText) {
  const Value left = parsed(R"({"b":[1,{"y":null,"x":true}],"a":"\n"})");
  const Value right = parsed(R"( {"a" : "\n", "b" : [1, {"x":true,"y":null}] } )");
  EXPECT_EQ(left, right);
  EXPECT_EQ(left.to_text(), R"({"a":"\n","b":[1,{"x":true,"y":null}]})");
  EXPECT_EQ(left.to_text(), right.to_text());
}

TEST(Value, OrderOfElementsMatters) { EXPECT_NE(parsed("[1,2]"), parsed("[2,1]")); }

TEST(Value, AWholeNumberAndTheSameFractionAreEqual) {
  EXPECT_EQ(parsed("1"), parsed("1.0"));
  EXPECT_NE(parsed("1"), parsed("1.5"));
  EXPECT_NE(parsed("1"), parsed("\"1\""));
  EXPECT_NE(parsed("1"), parsed("true"));
  EXPECT_NE(parsed("0"), Value());
  EXPECT_EQ(parsed("9223372036854775807").integer(), 9223372036854775807);
}

TEST(Value, ReadsOfTheWrongKindGiveNothing) {
  const Value value = parsed(R"({"a":{"b":"text"}})");
  EXPECT_EQ(value.at({"a", "b"}).text(), "text");
  EXPECT_TRUE(value.at({"a", "b", "c"}).is_null());
  EXPECT_TRUE(value["x"].is_null());
  EXPECT_EQ(value["a"].integer(), std::nullopt);
  EXPECT_EQ(value["a"].boolean(), std::nullopt);
  EXPECT_EQ(value["a"].text(), "");
  EXPECT_TRUE(value["a"].items().empty());
  EXPECT_EQ(value["a"].size(), 1U);
  EXPECT_EQ(value.at({"a", "b"}).size(), 0U);
}

TEST(Value, SetMakesTheObjectsAboveAndEraseLeavesThem) {
  Value value;
  value.set({"a", "b", "c"}, 1);
  value.set({"a", "d"}, Value::array({"x", true}));
  EXPECT_EQ(value.to_text(), R"({"a":{"b":{"c":1},"d":["x",true]}})");
  EXPECT_TRUE(value.erase({"a", "b", "c"}));
  EXPECT_FALSE(value.erase({"a", "b", "c"}));
  EXPECT_FALSE(value.erase({"a", "nobody", "c"}));
  EXPECT_FALSE(value.erase({"a", "d", "c"}));
  EXPECT_FALSE(value.erase({}));
  EXPECT_EQ(value.to_text(), R"({"a":{"b":{},"d":["x",true]}})");
}

TEST(Value, MergesAsRfc7386Says) {
  struct Case {
    std::string target, patch, want;
  };
  // Appendix A of the RFC.
  for (const Case& row : std::vector<Case>{
           {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
           {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
           {R"({"a":"b"})", R"({"a":null})", R"({})"},
           {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
           {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
           {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
           {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
           {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
           {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
           {R"({"a":"foo"})", "null", "null"},
           {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
           {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
           {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"}}) {
    Value target = parsed(row.target);
    target.merge(parsed(row.patch));
    EXPECT_EQ(target, parsed(row.want)) << row.target << " with " << row.patch;
  }
}

// Any tree of a few members, from a seed.
Value random_value(Rng& rng, int depth) {
  switch (rng.below(depth > 0 ? 7 : 5)) {
    case 0:
      return {};
    case 1:
      return rng.below(2) == 0;
    case 2:
      return static_cast<std::int64_t>(rng.next());
    case 3:
      return rng.unit();
    case 4:
      return std::string("\x01\"\\é") + std::to_string(rng.below(10));
    case 5: {
      Value::Items items;
      for (std::uint32_t i = rng.below(4); i > 0; --i)
        items.push_back(random_value(rng, depth - 1));
      return items;
    }
    default: {
      Value::Members members;
      for (std::uint32_t i = rng.below(4); i > 0; --i) {
        members[std::to_string(rng.below(9))] = random_value(rng, depth - 1);
      }
      return members;
    }
  }
}

TEST(Value, TextReadBackIsTheSameValue) {
  Rng rng(7);
  for (int i = 0; i < 2000; ++i) {
    const Value value = random_value(rng, 4);
    ASSERT_EQ(value, parsed(value.to_text())) << value.to_text();
  }
}

TEST(Value, ItemsAreTakenOutOfAListAndOfNothingElse) {
  EXPECT_EQ(parsed(R"({"items":[1,{"a":2}]})").take_items("items"),
            (Value::Items{1, Value::object({{"a", 2}})}));
  EXPECT_TRUE(parsed(R"({"items":{"a":2}})").take_items("items").empty());
  EXPECT_TRUE(parsed(R"({"others":[1]})").take_items("items").empty());
  EXPECT_TRUE(parsed("[1]").take_items("items").empty());
}

TEST(Value, BrokenTextIsAnError) {
  EXPECT_FALSE(Value::parse("{").ok());
  EXPECT_FALSE(Value::parse("").ok());
  EXPECT_FALSE(Value::parse(std::string(100, '[')).ok());
}

}  // namespace
}  // namespace sightline::object
