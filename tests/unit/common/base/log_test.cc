// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/log.h"

#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "common/base/json.h"

namespace sightline {
namespace {

// What `write` logs in this format, as it arrives at standard error.
std::string logged(std::string_view format, const std::function<void()>& write) {
  EXPECT_TRUE(start_log("info", format).ok());
  testing::internal::CaptureStderr();
  write();
  flush_log();
  std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(start_log("info").ok());
  return lines;
}

// Values that would break a careless format.
void log_odd_line() {
  log(LogLevel::Warn, "say \"hi\"",
      {{"path", "a b\\\nc\x1b"},
       {"n", 7},
       {"ok", true},
       {"cost", 0.5},
       {"worst", std::numeric_limits<double>::infinity()}});
}

TEST(Log, WritesFieldsAsText) {
  const std::string line = logged("text", log_odd_line);
  EXPECT_EQ(line.substr(line.find('Z')),
            "Z warning say \"hi\" path=\"a b\\\\\\nc\\x1b\" n=7 ok=true cost=0.5 worst=inf\n");
}

TEST(Log, WritesOneJsonObjectPerLine) {
  const std::string line = logged("json", log_odd_line);
  EXPECT_EQ(
      line.substr(line.find('Z')),
      "Z\",\"level\":\"warning\",\"message\":\"say \\\"hi\\\"\",\"path\":\"a b\\\\\\\\nc\\\\x1b\","
      "\"n\":7,\"ok\":true,\"cost\":0.5,\"worst\":\"inf\"}\n");
}

TEST(Log, WritesJsonThatAParserReads) {
  const auto line = json::Document::parse(logged("json", log_odd_line));
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line.value().root().find("message")->string(), "say \"hi\"");
  EXPECT_EQ(line.value().root().find("path")->string(), "a b\\\\nc\\x1b");
  EXPECT_EQ(line.value().root().find("n")->integer(), 7);
}

TEST(Log, WritesOnlyLinesOfItsLevel) {
  const auto write = [] {
    ASSERT_TRUE(set_log_level("error").ok());
    log(LogLevel::Warn, "below the level");
    log(LogLevel::Error, "of the level");
  };
  const std::string lines = logged("text", write);
  EXPECT_EQ(lines.find("below"), std::string::npos);
  EXPECT_NE(lines.find("error of the level\n"), std::string::npos);
}

TEST(Log, RefusesAnUnknownFormat) {
  EXPECT_EQ(start_log("info", "yaml").error().message,
            "log format must be text or json, not 'yaml'");
}

TEST(Log, RefusesAnUnknownLevel) {
  EXPECT_EQ(set_log_level("off").error().message,
            "log level must be debug, info, warn or error, not 'off'");
}

}  // namespace
}  // namespace sightline
