// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "common/contract/agent_settings.h"
#include "common/contract/metric_table.h"
#include "common/contract/serve_settings.h"

#include "tests/support/paths.h"

// The tables of docs/configuration.md and docs/metrics.md are generated from this code and compared
// with the files. On a difference the generated table is written to docs/ in the build directory.
namespace sightline::contract {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A '|' would end the table's cell.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string settings_markdown() {
  ServeSettings settings;
  const SettingTable table = serve_table(settings);
  std::ostringstream out;
  out << "| YAML | flag | default | allowed | meaning |\n|---|---|---|---|---|\n";
  for (const Setting& row : table.rows()) {
    out << "| `" << row.text.path << "` | `--" << row.text.flag;
    if (!row.text.placeholder.empty()) out << ' ' << row.text.placeholder;
    out << "` | " << (row.default_text.empty() ? "" : "`" + row.default_text + "`") << " | "
        << row.range << " | " << escaped(row.text.help) << " |\n";
  }
  return out.str();
}

// A setting of an agent means the same as a router's of the same name, so names are enough.
std::string agent_settings_markdown() {
  AgentSettings settings;
  const SettingTable table = agent_table(settings);
  std::string out = "| settings of `sightline agent` |\n|---|\n|";
  for (const Setting& row : table.rows()) {
    out += (out.ends_with('|') ? " `" : ", `") + row.text.path + "`";
  }
  return out + " |\n";
}

std::string metrics_markdown() {
  std::ostringstream out;
  out << "| name | type | labels | replicas | meaning |\n|---|---|---|---|---|\n";
  for (const MetricSpec* spec : kMetricTable) {
    out << "| `" << spec->name << "` | " << name_of(spec->type) << " | ";
    for (std::size_t i = 0; i < spec->label_count(); ++i) {
      out << (i == 0 ? "" : ", ") << '`' << spec->labels.at(i) << '`';
    }
    out << " | " << name_of(spec->combine) << " | " << spec->help << " |\n";
  }
  return out.str();
}

void expect_table_in(const std::string& name, const std::string& table) {
  const std::filesystem::path built = test::in_build("docs");
  const std::string document = content_of(test::in_sources("docs/" + name)) + "\n\n";
  if (document.find("\n\n" + table + "\n") != std::string::npos) return;
  std::filesystem::create_directories(built);
  std::ofstream(built / name) << table;
  ADD_FAILURE() << "docs/" << name << " differs from the code: put the table of " << (built / name)
                << " there";
}

TEST(Docs, TheConfigurationTableIsThatOfTheCode) {
  expect_table_in("configuration.md", settings_markdown());
}

TEST(Docs, AgentSettingsMatchTheCodeAndTheRouter) {
  expect_table_in("configuration.md", agent_settings_markdown());
  AgentSettings settings;
  ServeSettings of_router;
  const SettingTable table = agent_table(settings);
  const SettingTable routers = serve_table(of_router);
  for (const Setting& row : table.rows()) {
    if (row.text.path.starts_with("agent.")) continue;  // a router has no settings of this section
    const auto same =
        std::find_if(routers.rows().begin(), routers.rows().end(),
                     [&](const Setting& other) { return other.text.path == row.text.path; });
    ASSERT_NE(same, routers.rows().end()) << row.text.path;
    EXPECT_EQ(same->text.flag, row.text.flag);
    EXPECT_EQ(same->text.help, row.text.help);
    EXPECT_EQ(same->range, row.range);
  }
}

TEST(Docs, TheMetricsTableIsThatOfTheCode) { expect_table_in("metrics.md", metrics_markdown()); }

TEST(MetricTable, EveryMetricOfTheHeadersIsInTheTable) {
  const std::string declaration = "constexpr MetricSpec k";
  std::size_t count = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(test::in_sources("common/contract"))) {
    if (!file.path().filename().string().starts_with("metric")) continue;
    const std::string header = content_of(file.path());
    for (std::size_t at = 0; (at = header.find(declaration, at)) != std::string::npos; ++at)
      ++count;
  }
  EXPECT_EQ(count, kMetricTable.size());
}

// Prometheus adds these labels to the targets in a cluster, and renames ours.
TEST(MetricTable, NoLabelIsOneOfTheTargetsOwn) {
  const std::set<std::string_view> targets = {"job",       "instance", "namespace", "pod",
                                              "container", "endpoint", "service",   "node"};
  for (const MetricSpec* spec : kMetricTable) {
    for (const std::string_view label : spec->labels) {
      EXPECT_FALSE(targets.contains(label)) << spec->name << " " << label;
    }
  }
}

TEST(MetricTable, OnlyGrowingMetricsWithOwnLabelsListInitialSeries) {
  for (const MetricSpec* spec : kMetricTable) {
    const bool of_worker = spec->labels.front() == kWorkerLabel;
    if (spec->born.empty()) continue;
    EXPECT_NE(spec->type, MetricType::Gauge) << spec->name;
    EXPECT_GT(spec->label_count(), of_worker ? 1U : 0U) << spec->name;
    std::set<LabelValues> seen;
    for (const LabelValues& values : spec->born) {
      EXPECT_TRUE(seen.insert(values).second) << spec->name;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_said = i < spec->label_count() && !(of_worker && i == 0);
        EXPECT_EQ(values.at(i).empty(), !is_said) << spec->name << " " << values.at(i);
      }
    }
  }
}

TEST(MetricTable, NamesFollowThePrometheusRules) {
  std::set<std::string_view> seen;
  for (const MetricSpec* spec : kMetricTable) {
    const std::string name(spec->name);
    EXPECT_TRUE(name.starts_with("sightline_")) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    EXPECT_EQ(name.find("__"), std::string::npos) << name;
    EXPECT_TRUE(seen.insert(spec->name).second) << name;
    EXPECT_EQ(name.ends_with("_total"), spec->type == MetricType::Counter) << name;
    EXPECT_EQ(spec->buckets.empty(), spec->type != MetricType::Histogram) << name;
    EXPECT_TRUE(std::is_sorted(spec->buckets.begin(), spec->buckets.end())) << name;
    EXPECT_FALSE(spec->help.empty()) << name;
  }
}

}  // namespace
}  // namespace sightline::contract
