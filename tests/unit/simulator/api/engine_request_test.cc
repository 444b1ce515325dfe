// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/engine_request.h"

#include <gtest/gtest.h>

#include "simulator/api/api_error.h"
#include "tests/support/captures.h"

namespace sightline::api {
namespace {

constexpr std::uint32_t kModelLength = 4096;

EngineModel tiny() {
  EngineModel model;
  model.name = "tiny";
  model.lora_modules = {"ad", "other"};
  model.max_model_len = kModelLength;
  return model;
}

Result<RequestFields> read(const std::string& body, const EngineModel& model) {
  const auto document = SL_TRY(parse_body(body, "application/json"));
  SL_TRY(require_field(document.root(), "messages"));
  return read_fields(document.root(), model);
}

RequestFields read_ok(const std::string& members) {
  const EngineModel model = tiny();
  const auto fields = read("{\"messages\":[]," + members + "}", model);
  EXPECT_TRUE(fields.ok()) << members;
  return *fields;
}

std::string refusal(const std::string& members) {
  const EngineModel model = tiny();
  const auto fields = read("{\"messages\":[]," + members + "}", model);
  return fields.ok() ? "" : fields.error().message;
}

TEST(Request, RefusesWithTheWordsOfTheEngine) {
  EngineModel model = tiny();
  model.lora_modules.clear();
  const auto session = test::load_capture("qwen2vl-main");
  for (const std::int64_t n :
       {135, 137, 170, 171, 172, 189, 202, 203, 204, 206, 208, 214, 215, 216, 217}) {
    const auto& exchange = session.exchange(n);
    const auto fields = read(exchange.request_body, model);
    ASSERT_FALSE(fields.ok()) << n;
    EXPECT_EQ(status_of(fields.error()), exchange.status) << n;
    EXPECT_EQ(body_of(fields.error()), exchange.response_body) << n;
  }
}

TEST(Request, RefusesAnotherContentType) {
  const auto document = parse_body("{}", "text/plain");
  ASSERT_FALSE(document.ok());
  EXPECT_EQ(body_of(document.error()),
            test::load_capture("qwen2vl-main").exchange(205).response_body);
  EXPECT_TRUE(parse_body("{}", "application/json; charset=utf-8").ok());
}

TEST(Request, RefusesPromptThatLeavesNoRoomForOutput) {
  const auto tokens = output_tokens_for(5000, {}, {.max_model_len = kModelLength, .fallback = 16});
  ASSERT_FALSE(tokens.ok());
  EXPECT_EQ(body_of(tokens.error()),
            test::load_capture("qwen2vl-main").exchange(213).response_body);
}

TEST(Request, ReadsTheFieldsThatShapeAnAnswer) {
  const RequestFields fields = read_ok(
      R"("stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},)"
      R"("max_tokens":9,"max_completion_tokens":7,"n":3,"cache_salt":"t-1","session_id":"s",)"
      R"("request_id":"r","return_token_ids":true,"vllm_xargs":{"kv_cache_report_mode":"full"})");
  EXPECT_TRUE(fields.stream && fields.include_usage && fields.continuous_usage);
  EXPECT_EQ(fields.output_tokens, 7U);
  EXPECT_EQ(fields.samples, 3U);
  EXPECT_EQ(fields.cache_salt, "t-1");
  EXPECT_EQ(fields.session_id, "s");
  EXPECT_EQ(fields.request_id, "r");
  EXPECT_TRUE(fields.return_token_ids && fields.report_reused);
}

TEST(Request, NumbersAdaptersFromOne) {
  EXPECT_EQ(read_ok(R"("model":"other")").lora, (core::Lora{"other", 2}));
  EXPECT_FALSE(read_ok(R"("model":"tiny")").lora.has_value());
  EXPECT_EQ(read_ok(R"("n":1)").model, "tiny");
  EXPECT_EQ(refusal(R"("model":"nope")"),
            "The model `nope` does not exist. Valid aliases: tiny, ad, other.");
}

TEST(Request, RefusesInvalidStreamOptionsAndSampleCounts) {
  EXPECT_NE(refusal(R"("stream_options":{"include_usage":true})").find("`stream=True`"),
            std::string::npos);
  EXPECT_NE(refusal(R"("n":65)"), "");
  EXPECT_NE(refusal(R"("n":0)"), "");
}

TEST(Request, ShortensOnlyTheDefaultOutputLength) {
  const OutputBounds bounds{.max_model_len = 100, .fallback = 16};
  EXPECT_EQ(*output_tokens_for(10, {}, bounds), 16U);
  EXPECT_EQ(*output_tokens_for(95, {}, bounds), 5U);
  RequestFields fields;
  fields.output_tokens = 5;
  EXPECT_EQ(*output_tokens_for(95, fields, bounds), 5U);
  fields.output_tokens = 6;
  const auto refused = output_tokens_for(95, fields, bounds);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("total of at least 101 tokens"), std::string::npos);
}

}  // namespace
}  // namespace sightline::api
