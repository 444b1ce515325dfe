// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/tool_arguments.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/python/print.h"

namespace sightline::chat {
namespace {

std::string repr(const jinja::Value& value) {
  python::Meter meter(100'000);
  return python::repr_of(value, meter);
}

// {"a":[{},{},…]} with this number of values.
std::string arguments_of(std::size_t values) {
  std::string text = R"({"a":[{})";
  for (std::size_t i = 3; i < values; ++i) text += ",{}";
  return text + "]}";
}

TEST(ToolArguments, AreAnObjectOrNothing) {
  const ToolArguments arguments;
  EXPECT_EQ(repr(arguments.dict_of(R"( {"b": {"c": "sécond", "c": 2}, "a": 1} )")),
            "{'b': {'c': 2}, 'a': 1}");
  for (const char* text : {"[1]", "", "{", "null", "1"}) {
    EXPECT_EQ(repr(arguments.dict_of(text)), "{}") << text;
  }
  EXPECT_FALSE(arguments.error());
}

TEST(ToolArguments, StayValidWithoutTheirCreator) {
  std::optional<ToolArguments> arguments(std::in_place);
  const jinja::Value value = arguments->dict_of(R"({"a": "x"})");
  const jinja::Value& copy = value;
  arguments.reset();
  EXPECT_EQ(repr(copy), "{'a': 'x'}");
  EXPECT_TRUE(value.is_true());
  EXPECT_EQ(value.type_name(), "dict");
}

TEST(ToolArguments, ShareOneLimitOfValues) {
  const std::string half = arguments_of(kArgumentValuesMax / 2);
  const ToolArguments arguments;
  const auto first = arguments.dict_of(half);
  const auto second = arguments.dict_of(half);
  const auto third = arguments.dict_of(R"({"a": 1})");
  EXPECT_TRUE(first.is_true());
  EXPECT_TRUE(second.is_true());
  EXPECT_FALSE(arguments.error());
  EXPECT_FALSE(third.is_true());
  ASSERT_TRUE(arguments.error());
  EXPECT_EQ(arguments.error()->code, ErrorCode::InvalidArgument);
  EXPECT_EQ(arguments.error()->limit, "tool-arguments-values-max");
  EXPECT_EQ(arguments.error()->param, "messages");
  EXPECT_NE(arguments.error()->message.find("500000"), std::string::npos);
}

TEST(ToolArguments, UnreadOnesCostNothing) {
  const std::string much = arguments_of(kArgumentValuesMax);
  const ToolArguments arguments;
  for (int i = 0; i < 20; ++i) {
    const auto value = arguments.dict_of(much);
    const auto list = jinja::Value::list({value});
    EXPECT_GT(list.depth(), 1U);
    EXPECT_TRUE(list.is_true());
  }
  EXPECT_TRUE(arguments.dict_of(much).is_true());
  EXPECT_FALSE(arguments.error());
}

TEST(ToolArguments, DeeplyNestedOnesAreRefused) {
  const ToolArguments arguments;
  const std::string deep = R"({"a": )" + std::string(5000, '[');
  EXPECT_EQ(repr(arguments.dict_of(deep)), "{}");
  ASSERT_TRUE(arguments.error());
  EXPECT_EQ(arguments.error()->code, ErrorCode::TooLarge);
}

TEST(ToolArguments, ThoseOnlyPythonReadsAreUnsupported) {
  const ToolArguments arguments;
  EXPECT_EQ(repr(arguments.dict_of(R"({"a": NaN})")), "{}");
  ASSERT_TRUE(arguments.error());
  EXPECT_EQ(arguments.error()->code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace sightline::chat
