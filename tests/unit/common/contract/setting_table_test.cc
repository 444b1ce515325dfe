// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/setting_table.h"

#include <gtest/gtest.h>

namespace sightline::contract {
namespace {

using std::chrono::milliseconds;

struct Fields {
  std::uint16_t port = 80;
  double ratio = 0.25;
  milliseconds time{1500};
  std::uint64_t size = 3 << 10;
  bool on = false;
  std::string word = "a";
};

SettingTable table_of(Fields& fields) {
  SettingTable table;
  table.add_integer<std::uint16_t>({"port", "port", "N", ""}, fields.port, {1, 65535});
  table.add_number({"ratio", "ratio", "X", ""}, fields.ratio, {0, 1});
  table.add_duration({"time", "the-time", "TIME", ""}, fields.time,
                     {milliseconds(0), milliseconds(7'200'000)});
  table.add_size({"size", "size", "SIZE", ""}, fields.size, {0, 5 << 20});
  table.add_switch({"on", "on", "", ""}, fields.on);
  table.add_choice({"word", "word", "WORD", ""}, fields.word, {"a", "bb"});
  return table;
}

// The row's value after giving it the text, or "refused".
std::string give(Setting& row, const std::string& text) {
  const auto before = row.show();
  if (row.add({text, {}}).ok()) return row.show().at(0);
  EXPECT_EQ(row.show(), before) << "a refused value left its mark: " << text;
  return "refused";
}

TEST(SettingTable, TextsBecomeValuesOrAreRefused) {
  struct Case {
    std::size_t row;
    std::string text;
    std::string want;
  };
  const std::vector<Case> cases = {
      {0, "1", "1"},           {0, "65535", "65535"},  {0, "0", "refused"},
      {0, "65536", "refused"}, {0, "", "refused"},     {0, " 1", "refused"},
      {0, "1 ", "refused"},    {0, "+1", "refused"},   {0, "-1", "refused"},
      {0, "01", "refused"},    {0, "0x10", "refused"}, {0, "1e3", "refused"},
      {0, "1.0", "refused"},   {1, "0.5", "0.5"},      {1, "1", "1"},
      {1, "1e-3", "0.001"},    {1, "1.1", "refused"},  {1, "-0.1", "refused"},
      {1, "inf", "refused"},   {1, "nan", "refused"},  {1, "", "refused"},
      {1, "0,5", "refused"},   {2, "250ms", "250ms"},  {2, "60s", "1m"},
      {2, "120m", "2h"},       {2, "90s", "90s"},      {2, "0ms", "0ms"},
      {2, "3h", "refused"},    {2, "5", "refused"},    {2, "1.5s", "refused"},
      {2, "5 s", "refused"},   {2, "-5s", "refused"},  {2, "5S", "refused"},
      {3, "4096", "4KiB"},     {3, "4097", "4097"},    {3, "5MiB", "5MiB"},
      {3, "0", "0"},           {3, "6MiB", "refused"}, {3, "5MB", "refused"},
      {3, "1k", "refused"},    {4, "true", "true"},    {4, "false", "false"},
      {4, "1", "refused"},     {4, "True", "refused"}, {5, "bb", "bb"},
      {5, "b", "refused"},     {5, "", "refused"},     {2, "18446744073709551615h", "refused"},
  };
  for (const Case& c : cases) {
    Fields fields;
    SettingTable table = table_of(fields);
    EXPECT_EQ(give(table.rows()[c.row], c.text), c.want) << "row " << c.row << " " << c.text;
  }
}

TEST(SettingTable, RowsHaveDefaultRangeAndVariable) {
  Fields fields;
  const SettingTable table = table_of(fields);
  std::vector<std::string> texts;
  for (const Setting& row : table.rows()) {
    texts.push_back(environment_name(row) + " " + row.default_text + " " + row.range);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "SIGHTLINE_PORT 80 1..65535", "SIGHTLINE_RATIO 0.25 0..1",
                       "SIGHTLINE_THE_TIME 1500ms 0ms..2h", "SIGHTLINE_SIZE 3KiB 0..5MiB",
                       "SIGHTLINE_ON false true, false", "SIGHTLINE_WORD a a, bb"}));
}

TEST(SettingTable, LongRefusedTextsAreCutInTheMessage) {
  Fields fields;
  SettingTable table = table_of(fields);
  const auto result = table.rows()[0].add({std::string(100'000, '9'), {}});
  ASSERT_FALSE(result.ok());
  EXPECT_LT(result.error().message.size(), 200u);
}

TEST(Suggestion, IsTheNearestNameOrNothing) {
  const std::vector<std::string> names = {"port", "host", "idle_timeout"};
  EXPECT_EQ(suggestion("prot", names), " (did you mean 'port'?)");
  EXPECT_EQ(suggestion("idletimeout", names), " (did you mean 'idle_timeout'?)");
  EXPECT_EQ(suggestion("idle", names), " (did you mean 'idle_timeout'?)");
  EXPECT_EQ(suggestion("something", names), "");
  EXPECT_EQ(suggestion(std::string(100'000, 'p'), names), "");
}

}  // namespace
}  // namespace sightline::contract
