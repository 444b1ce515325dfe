// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/retry/refusal.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::retry {
namespace {

// Sun, 06 Nov 1994 08:49:37 GMT, which is the example of RFC 9110.
constexpr WallTime kNow{std::chrono::seconds(784111777)};

std::optional<std::uint32_t> seconds_of(std::string value) {
  return read_refusal({.retry_after = std::move(value), .body = {}, .engine_host = {}}, kNow)
      .retry_after_s;
}

WorkerRefusal refusal_of(std::string body, std::string host = "10.0.0.7") {
  return read_refusal({.retry_after = {}, .body = std::move(body), .engine_host = std::move(host)},
                      kNow);
}

TEST(WorkerRefusal, ReadsSecondsAndDatesWithinBounds) {
  const std::vector<std::pair<std::string, std::optional<std::uint32_t>>> cases{
      {"", std::nullopt},
      {"17", 17},
      {"0", 1},
      {"3600", 3600},
      {"3601", 3600},
      {"99999999999999999999999", 3600},
      {"-5", std::nullopt},
      {"1.5", std::nullopt},
      {"5, 6", std::nullopt},
      {"soon\r\nx: y", std::nullopt},
      {"Sun, 06 Nov 1994 08:50:07 GMT", 30},
      {"Sun, 06 Nov 1994 08:49:30 GMT", 1},
      {"Sun, 06 Nov 2094 08:49:37 GMT", 3600},
      {"Sun, 06 Nov 1994 08:50:07 GMT; x", std::nullopt},
  };
  for (const auto& [value, want] : cases) EXPECT_EQ(seconds_of(value), want) << value;
}

TEST(WorkerRefusal, KeepsErrorsInOpenAiShape) {
  const std::string body =
      R"({"error":{"message":"busy at 10:30:00","type":"ServiceUnavailableError","code":503}})";
  const WorkerRefusal refusal = refusal_of(body);
  EXPECT_EQ(refusal.body, body);
  EXPECT_EQ(refusal.text, "busy at 10:30:00");
}

TEST(WorkerRefusal, TurnsOtherBodiesIntoText) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ""},
      {"no healthy upstream", "no healthy upstream"},
      {"two\r\n\tlines\x01\x7F", "two lines"},
      {"broken \xFF\xC0\xAF utf \xED\xA0\x80 8 \xE2\x82", "broken utf 8"},
      {"gr\xC3\xBC\xC3\x9F", "gr\xC3\xBC\xC3\x9F"},
      {R"({"error":"Unauthorized"})", "Unauthorized"},
      {R"({"error":{"message":7}})", R"({"error":{"message":7}})"},
      {R"({"detail":"x"})", R"({"detail":"x"})"},
  };
  for (const auto& [body, want] : cases) {
    EXPECT_EQ(refusal_of(body).text, want);
    EXPECT_EQ(refusal_of(body).body, "");
  }
  EXPECT_EQ(refusal_of(std::string(5000, 'x')).text.size(), kRefusalTextBytesMax);
  const std::string large =
      R"({"error":{"message":")" + std::string(kRefusalBodyBytesMax, 'x') + R"("}})";
  EXPECT_EQ(refusal_of(large).body, "");
  EXPECT_EQ(refusal_of(large).text, std::string(kRefusalTextBytesMax, 'x'));
}

TEST(WorkerRefusal, ReplacesAddressesInTheText) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"dial 10.0.0.7:8000: refused", "dial [address]: refused"},
      {"dial 192.168.1.255 failed", "dial [address] failed"},
      {"see http://engine-3.internal:80/health now", "see [address]/health now"},
      {"at [fd00::1]:8000, [::1]", "at [address], [address]"},
      {"at fd00:1:2:3:4:5:6:7", "at [address]"},
      {"engine-3:8000 and engine-3.", "[address] and [address]."},
      {"engine-35 and my-engine-3 stay", "engine-35 and my-engine-3 stay"},
      {"vLLM 0.32.0.1 at 12:30:45", "vLLM [address] at 12:30:45"},
      {"version 0.32.0 of 2026-11-22", "version 0.32.0 of 2026-11-22"},
  };
  for (const auto& [body, want] : cases) EXPECT_EQ(refusal_of(body, "engine-3").text, want);
  for (const std::string message :
       {"at 10.0.0.7", "at http:\\/\\/x.y", "at 10\\u002e0.0.7", "on engine-3"}) {
    const WorkerRefusal refusal =
        refusal_of(R"({"error":{"message":")" + message + R"("}})", "engine-3");
    EXPECT_EQ(refusal.body, "") << message;
    EXPECT_NE(refusal.text.find("[address]"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace sightline::retry
