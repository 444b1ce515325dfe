// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/print.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace sightline::python {
namespace {

std::string repr(const Value& value) {
  Meter meter(1'000'000);
  return repr_of(value, meter);
}

std::string str(const Value& value) {
  Meter meter(1'000'000);
  return str_of(value, meter);
}

std::string json(const Value& value, const JsonStyle& style = {}) {
  Meter meter(1'000'000);
  std::string out;
  const auto done = append_json(out, value, style, meter);
  return done.ok() ? out : "error: " + done.error().message;
}

Value sample() {
  return Value::dict(Dict({{Value::text("b"), Value::list({Value::integer(1), Value::real(2.5)})},
                           {Value::text("a"), Value::text("é\"\n\x7f😀")},
                           {Value::integer(3), Value::none()},
                           {Value::boolean(true), Value::list({})}}));
}

TEST(Print, FloatsHavePythonsShortestForm) {
  for (const auto& [number, text] : std::initializer_list<std::pair<double, std::string>>{
           {0.0, "0.0"},
           {-0.0, "-0.0"},
           {1.0, "1.0"},
           {0.1, "0.1"},
           {1e15, "1000000000000000.0"},
           {1e16, "1e+16"},
           {1.5e20, "1.5e+20"},
           {0.0001, "0.0001"},
           {0.00001, "1e-05"},
           {1.25e-7, "1.25e-07"},
           {123456789.123, "123456789.123"},
           {5e-324, "5e-324"},
           {std::numeric_limits<double>::infinity(), "inf"}}) {
    EXPECT_EQ(repr_of(number), text);
  }
}

TEST(Print, TextsAreQuotedAsPythonQuotesThem) {
  EXPECT_EQ(repr(Value::text("it's")), "\"it's\"");
  EXPECT_EQ(repr(Value::text("it's \"q\"")), R"('it\'s "q"')");
  EXPECT_EQ(repr(Value::text("\\\n\t\r\x01\x7f\u00a0\u2028😀é")),
            R"('\\\n\t\r\x01\x7f\xa0\u2028😀é')");
}

TEST(Print, ContainersPrintTheirItemsByRepr) {
  EXPECT_EQ(str(sample()), R"({'b': [1, 2.5], 'a': 'é"\n\x7f😀', 3: None, True: []})");
  EXPECT_EQ(str(Value::list({Value::text("x")}, SequenceKind::Tuple)), "('x',)");
  EXPECT_EQ(str(Value::list({Value::undefined("u")})), "[Undefined]");
  EXPECT_EQ(str(Value::undefined("u")), "");
  EXPECT_EQ(str(Value::none()), "None");
  EXPECT_EQ(str(Value::boolean(false)), "False");
}

TEST(Print, JsonEqualsPythonsDumps) {
  EXPECT_EQ(json(sample()),
            "{\"b\": [1, 2.5], \"a\": \"é\\\"\\n\x7f😀\", \"3\": null, \"true\": []}");
  JsonStyle ascii;
  ascii.ensure_ascii = true;
  EXPECT_EQ(json(Value::text("é\x7f😀</b>"), ascii), R"("\u00e9\u007f\ud83d\ude00</b>")");
  JsonStyle indented;
  indented.indent = "  ";
  indented.item_separator = ",";
  EXPECT_EQ(json(Value::list({Value::integer(1), Value::list({}),
                              Value::dict(Dict({{Value::text("k"), Value::none()}}))}),
                 indented),
            "[\n  1,\n  [],\n  {\n    \"k\": null\n  }\n]");
  EXPECT_EQ(json(Value::real(std::numeric_limits<double>::infinity())), "Infinity");
}

TEST(Print, JsonSortsKeysAndRefusesOtherTypes) {
  JsonStyle sorted;
  sorted.sort_keys = true;
  EXPECT_EQ(json(Value::dict(Dict({{Value::text("b"), Value::integer(1)},
                                   {Value::text("a"), Value::integer(2)}})),
                 sorted),
            R"({"a": 2, "b": 1})");
  EXPECT_TRUE(json(sample(), sorted).starts_with("error: '<' not supported between instances"));
  EXPECT_EQ(json(Value::undefined("u")),
            "error: Object of type Undefined is not JSON serializable");
  EXPECT_EQ(json(Value::list({}, SequenceKind::Generator)),
            "error: Object of type generator is not JSON serializable");
}

TEST(Print, SharedContainersCannotMakeHugeOutput) {
  Value value = Value::list({Value::integer(1)});
  for (int i = 0; i < 60; ++i) value = Value::list({value, value});
  Meter meter(100'000);
  const std::string text = repr_of(value, meter);
  EXPECT_TRUE(meter.is_exhausted());
  EXPECT_LT(text.size(), 1'000'000U);
  Meter json_meter(100'000);
  std::string out;
  EXPECT_TRUE(append_json(out, value, {}, json_meter).ok());
  EXPECT_TRUE(json_meter.is_exhausted());
  EXPECT_LT(out.size(), 1'000'000U);
}

}  // namespace
}  // namespace sightline::python
