// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/settings.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <gtest/gtest.h>

#include "common/contract/load_settings.h"

#include "tests/support/paths.h"

namespace sightline::cluster {
namespace {

Result<SimulateSettings> load(std::vector<std::string> arguments) {
  SimulateSettings settings;
  contract::SettingTable table = setting_table(settings);
  contract::SettingSources sources;
  sources.arguments = std::move(arguments);
  SL_TRY(contract::load_settings(table, sources));
  SL_TRY(validate(settings));
  return settings;
}

std::string error_of(std::vector<std::string> arguments) {
  const auto settings = load(std::move(arguments));
  return settings.ok() ? "" : settings.error().message;
}

TEST(SimulateSettings, FlagsSetTheFields) {
  const auto settings =
      load({"--engines", "4", "--base-port", "8201", "--block-size", "32", "--decode-tokens-per-s",
            "62.5", "--event-encoding", "v0.20", "--lora-module", "a", "--lora-module", "b",
            "--instant", "--data-parallel-size", "3"});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->engines, 4U);
  EXPECT_EQ(settings->base_port, 8201);
  EXPECT_EQ(settings->block_size, 32U);
  EXPECT_EQ(settings->decode_tokens_per_s, 62.5);
  EXPECT_EQ(settings->event_encoding, "v0.20");
  EXPECT_EQ(settings->lora_modules, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(settings->instant);
  EXPECT_EQ(settings->data_parallel_size, 3U);
}

TEST(SimulateSettings, RefusesInvalidValuesByFlagName) {
  EXPECT_NE(error_of({"--engines", "0"}).find("--engines"), std::string::npos);
  EXPECT_NE(error_of({"--event-hashes", "hex"}).find("--event-hashes"), std::string::npos);
  EXPECT_NE(error_of({"--event-encoding", "v9"}).find("v0.11"), std::string::npos);
  EXPECT_NE(error_of({"--event-encoding", "v0.21", "--window-blocks", "4"}).find("v0.22"),
            std::string::npos);
  EXPECT_NE(error_of({"--base-port", "65535"}).find("below port 65536"), std::string::npos);
}

TEST(SimulateSettings, RefusesOverlappingPortRangesWithAFix) {
  EXPECT_EQ(error_of({"--events-base-port", "5600", "--engines", "64"}),
            "the ports of --events-base-port 5600 and --replay-base-port 5657 overlap for 64 "
            "engines, which take 64 of --events-base-port: set --replay-base-port to 5664 or "
            "above");
  EXPECT_EQ(
      error_of({"--events-base-port", "5600", "--engines", "4", "--data-parallel-size", "16"}),
      "the ports of --events-base-port 5600 and --replay-base-port 5657 overlap for 4 "
      "engines of 16 ranks, which take 64 of --events-base-port: set --replay-base-port to "
      "5664 or above");
  EXPECT_EQ(error_of({"--base-port", "5550", "--engines", "4", "--data-parallel-size", "16"}), "");
  EXPECT_EQ(error_of({"--events-base-port", "0", "--replay-base-port", "0"}), "");
}

// Writes the table of docs/configuration.md from the code and compares it with the file. On a
// difference the test writes the wanted table to docs/ of the build directory.
TEST(SimulateSettings, ConfigurationTableEqualsTheCode) {
  SimulateSettings settings;
  const contract::SettingTable table = setting_table(settings);
  std::ostringstream wanted;
  wanted << "| name | flag | default | allowed | meaning |\n|---|---|---|---|---|\n";
  for (const contract::Setting& row : table.rows()) {
    wanted << "| `" << row.text.path << "` | `--" << row.text.flag
           << (row.text.placeholder.empty() ? "" : " ") << row.text.placeholder << "` | "
           << (row.default_text.empty() ? "" : "`" + row.default_text + "`") << " | " << row.range
           << " | " << row.text.help << " |\n";
  }
  std::ifstream file(test::in_sources("docs/configuration.md"), std::ios::binary);
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  if (document.find(wanted.str()) != std::string::npos) return;
  const std::filesystem::path built = test::in_build("docs");
  std::filesystem::create_directories(built);
  std::ofstream(built / "simulate.md") << wanted.str();
  ADD_FAILURE() << "docs/configuration.md differs from the code: put the table of "
                << (built / "simulate.md") << " there";
}

}  // namespace
}  // namespace sightline::cluster
