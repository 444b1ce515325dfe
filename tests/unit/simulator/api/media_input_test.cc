// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/media_input.h"

#include <gtest/gtest.h>

#include "simulator/api/api_error.h"
#include "tests/support/captures.h"

namespace sightline::api {
namespace {

constexpr std::uint64_t kCacheBytes = 1ULL << 30U;

processor::Checkpoint tiny_checkpoint() {
  processor::Checkpoint checkpoint{.model_type = "qwen2_vl", .takes_media = true};
  checkpoint.images = {
      .patch_size = 14, .merge_size = 2, .shortest_edge = 3136, .longest_edge = 1003520};
  return checkpoint;
}

Result<std::vector<MediaInput>> read_body(const std::string& body, ProcessorCache& cache) {
  const auto document = json::Document::parse(body);
  EXPECT_TRUE(document.ok());
  return read_media(*document->root().find("messages"), tiny_checkpoint(), cache);
}

TEST(MediaInput, ReadsStrictBase64) {
  for (const auto& [text, want] : {std::pair<std::string, std::string>{"", ""},
                                   {"Zg==", "f"},
                                   {"Zm8=", "fo"},
                                   {"Zm9v", "foo"},
                                   {"Zm9vYmE=", "fooba"},
                                   {"//79", "\xff\xfe\xfd"}}) {
    const auto bytes = decode_base64(text);
    ASSERT_TRUE(bytes.ok()) << text;
    EXPECT_EQ(*bytes, want);
  }
  for (const char* text : {"Zg=", "Zg", "Z===", "Z", "@@@@", "Zm9v ", "Zm\n9v", "=Zm9"}) {
    EXPECT_FALSE(decode_base64(text).ok()) << text;
  }
  EXPECT_EQ(decode_base64("@@@@").error().message, "Non-base64 digit found");
}

// Reads the media of recorded prompts in the order of the session. An exchange may name without
// bytes what an earlier one sent.
TEST(MediaInput, NamesAndCountsImagesAsTheEngineDid) {
  const auto session = test::load_capture("qwen2vl-main");
  ProcessorCache cache(kCacheBytes);
  std::size_t compared = 0;
  for (const auto& prompt : session.prompts) {
    // This test does not replay render and reset calls.
    if (!prompt.n || *prompt.n >= 192) continue;
    const auto& exchange = session.exchange(*prompt.n);
    if (exchange.request_body.find("\"http://") != std::string::npos) continue;
    const auto inputs = read_body(exchange.request_body, cache);
    ASSERT_TRUE(inputs.ok()) << *prompt.n << inputs.error().message;
    ASSERT_EQ(inputs->size(), prompt.media.size()) << *prompt.n;
    for (std::size_t i = 0; i < inputs->size(); ++i) {
      EXPECT_EQ((*inputs)[i].tokens, prompt.media[i].length) << *prompt.n;
      const bool has_uuid = exchange.request_body.find("\"uuid\": ") != std::string::npos;
      if (has_uuid && inputs->size() == 1 && exchange.scenario != "uuid-wrong-place") {
        EXPECT_EQ((*inputs)[i].identifier, prompt.media[i].identifier) << *prompt.n;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 40U);
  EXPECT_GT(cache.hits, 20U);
}

TEST(MediaInput, RefusesWithTheWordsOfTheEngine) {
  const auto session = test::load_capture("qwen2vl-main");
  ProcessorCache cache(kCacheBytes);
  for (const std::int64_t n : {120, 123, 124, 153, 154, 180, 210, 211, 212, 220, 221}) {
    const auto& exchange = session.exchange(n);
    const auto inputs = read_body(exchange.request_body, cache);
    ASSERT_FALSE(inputs.ok()) << n;
    EXPECT_EQ(status_of(inputs.error()), exchange.status) << n;
    EXPECT_EQ(body_of(inputs.error()), exchange.response_body) << n;
  }
}

TEST(MediaInput, UuidWithoutBytesFailsWithoutProcessorCache) {
  const auto exchange = test::load_capture("qwen2vl-no-processor-cache").exchange(3);
  ProcessorCache cache(0);
  const auto inputs = read_body(exchange.request_body, cache);
  ASSERT_FALSE(inputs.ok());
  EXPECT_EQ(body_of(inputs.error()), exchange.response_body);
}

TEST(MediaInput, CachedItemWinsOverOtherBytesOfItsUuid) {
  const auto session = test::load_capture("qwen2vl-evict");
  ProcessorCache cache(kCacheBytes);
  const auto first = read_body(session.exchange(28).request_body, cache);
  const auto second = read_body(session.exchange(29).request_body, cache);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->front().identifier, second->front().identifier);
  EXPECT_EQ(first->front().tokens, second->front().tokens);
}

TEST(MediaInput, BytesNameAnImageWithoutUuid) {
  const std::string gif = "R0lGODdhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=";
  const auto body = [](const std::string& payload) {
    return R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,)" +
           payload + R"("}}]}]})";
  };
  ProcessorCache cache(kCacheBytes);
  const auto once = read_body(body(gif), cache);
  const auto again = read_body(body(gif), cache);
  std::string other = gif;
  other[20] = 'B';
  const auto changed = read_body(body(other), cache);
  ASSERT_TRUE(once.ok() && again.ok() && changed.ok());
  EXPECT_EQ(once->front().identifier, again->front().identifier);
  EXPECT_NE(once->front().identifier, changed->front().identifier);
}

}  // namespace
}  // namespace sightline::api
