// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/python_value.h"

#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/python/print.h"

namespace sightline::python {
namespace {

std::string repr(const Value& value) {
  Meter meter(1'000'000);
  return repr_of(value, meter);
}

Value from_text(const std::string& text, json::Document& keep) {
  auto parsed = json::Document::parse(text);
  EXPECT_TRUE(parsed.ok());
  keep = std::move(parsed).value();
  return Value::from_json(keep.root());
}

json::Document empty_document() { return std::move(json::Document::parse("{}")).value(); }

TEST(Value, ReadsJsonNumbersAsPythonDoes) {
  json::Document keep = empty_document();
  EXPECT_EQ(repr(from_text("[1, -0, 1.0, 1e3, 1e-400, -1e-400, 9223372036854775807, "
                           "9223372036854775808, -12345678901234567890123, true, null]",
                           keep)),
            "[1, 0, 1.0, 1000.0, 0.0, -0.0, 9223372036854775807, 9223372036854775808, "
            "-12345678901234567890123, True, None]");
}

TEST(Value, TextsOfJsonAreViewsOfTheDocument) {
  json::Document keep = empty_document();
  const Value value = from_text(R"({"a": "hello"})", keep);
  const std::string_view text = *value.as_dict()->find("a")->as_text();
  EXPECT_GE(text.data(), keep.text().data());
  EXPECT_LT(text.data(), keep.text().data() + keep.text().size());
}

TEST(Value, EqualKeysKeepFirstPlaceAndLastValue) {
  json::Document keep = empty_document();
  EXPECT_EQ(repr(from_text(R"({"a": 1, "b": 2, "a": 3})", keep)), "{'a': 3, 'b': 2}");
  const Dict mixed({{Value::integer(1), Value::text("x")},
                    {Value::text("1"), Value::text("y")},
                    {Value::boolean(true), Value::text("z")},
                    {Value::real(1.0), Value::text("w")}});
  EXPECT_EQ(repr(Value::dict(mixed)), "{1: 'w', '1': 'y'}");
}

TEST(Value, FindsEveryKeyOfALargeDict) {
  std::vector<Dict::Entry> entries;
  for (int i = 0; i < 1000; ++i) {
    entries.emplace_back(Value::text("k" + std::to_string(i % 500)), Value::integer(i));
  }
  const Dict dict(std::move(entries));
  ASSERT_EQ(dict.size(), 500U);
  for (int i = 0; i < 500; ++i) {
    const Value* found = dict.find("k" + std::to_string(i));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->as_integer(), i + 500);
  }
  EXPECT_EQ(dict.find("k500"), nullptr);
  EXPECT_EQ(dict.find(""), nullptr);
}

TEST(Value, EmptinessDecidesTruthExceptForGenerators) {
  EXPECT_FALSE(Value::none().is_true());
  EXPECT_FALSE(Value::undefined("x").is_true());
  EXPECT_FALSE(Value::integer(0).is_true());
  EXPECT_FALSE(Value::real(-0.0).is_true());
  EXPECT_FALSE(Value::text("").is_true());
  EXPECT_FALSE(Value::list({}).is_true());
  EXPECT_FALSE(Value::dict(Dict()).is_true());
  EXPECT_TRUE(Value::list({}, SequenceKind::Generator).is_true());
  EXPECT_TRUE(Value::text("0").is_true());
  EXPECT_TRUE(Value::list({Value::none()}).is_true());
}

TEST(Value, DepthCountsContainers) {
  const Value inner = Value::list({Value::integer(1)});
  EXPECT_EQ(Value::integer(1).depth(), 0U);
  EXPECT_EQ(inner.depth(), 1U);
  EXPECT_EQ(Value::list({inner, Value::none()}).depth(), 2U);
  EXPECT_EQ(Value::dict(Dict({{Value::text("k"), inner}})).depth(), 2U);
}

TEST(Value, OnlyContainersCannotBeKeys) {
  EXPECT_TRUE(is_hashable(Value::text("x")));
  EXPECT_TRUE(is_hashable(Value::list({Value::none()}, SequenceKind::Tuple)));
  EXPECT_FALSE(is_hashable(Value::list({Value::list({})}, SequenceKind::Tuple)));
  EXPECT_FALSE(is_hashable(Value::list({})));
  EXPECT_FALSE(is_hashable(Value::dict(Dict())));
}

}  // namespace
}  // namespace sightline::python
