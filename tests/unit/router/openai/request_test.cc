// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/request.h"

#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "router/openai/edits.h"

namespace sightline::openai {
namespace {

ApiRequest parsed(Endpoint endpoint, std::string body) {
  auto request = parse_request(endpoint, std::move(body), {});
  EXPECT_TRUE(request.ok()) << request.error().message;
  return std::move(request).value();
}

Error refused(Endpoint endpoint, std::string body, RequestLimits limits = {}) {
  const auto request = parse_request(endpoint, std::move(body), limits);
  EXPECT_FALSE(request.ok());
  return request.ok() ? Error{} : request.error();
}

TEST(ApiRequest, AChatRequestKeepsItsFieldsAfterItIsMoved) {
  ApiRequest first =
      parsed(Endpoint::Chat, R"({"model":"m","messages":[{"role":"user","content":"x"}],
    "stream":true,"stream_options":{"include_usage":true},"cache_salt":"s","max_tokens":7,
    "tools":[],"chat_template_kwargs":{"a":1},"add_generation_prompt":false,"odd":[1]})");
  const ApiRequest request = std::move(first);
  EXPECT_EQ(request.model, "m");
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_EQ(request.max_tokens, 7U);
  ASSERT_NE(request.chat(), nullptr);
  EXPECT_EQ(request.chat()->messages.raw(), R"([{"role":"user","content":"x"}])");
  EXPECT_FALSE(request.chat()->tools.has_value());
  EXPECT_EQ(request.chat()->template_kwargs->raw(), R"({"a":1})");
  EXPECT_FALSE(request.chat()->add_generation_prompt);
  EXPECT_FALSE(request.uncounted_field.has_value());
}

TEST(ApiRequest, EveryFormOfAPromptIsRead) {
  const auto text = parsed(Endpoint::Completions, R"({"prompt":"hello"})");
  EXPECT_EQ(std::get<std::string_view>(text.completion()->first_prompt), "hello");
  const auto batch = parsed(Endpoint::Completions, R"({"prompt":["a","b"]})");
  EXPECT_EQ(std::get<std::string_view>(batch.completion()->first_prompt), "a");
  const std::vector<TokenId> want{1, 2, 151655};
  const auto ids = parsed(Endpoint::Completions, R"({"prompt":[1,2,151655]})");
  EXPECT_EQ(std::get<std::vector<TokenId>>(ids.completion()->first_prompt), want);
  const auto batch_of_ids = parsed(Endpoint::Completions, R"({"prompt":[[1,2,151655],[3]]})");
  EXPECT_EQ(std::get<std::vector<TokenId>>(batch_of_ids.completion()->first_prompt), want);
}

TEST(ApiRequest, WrongTypesNameTheField) {
  struct Case {
    Endpoint endpoint;
    const char* body;
    const char* want_param;
  };
  const Case cases[] = {
      {Endpoint::Chat, R"({"model":3,"messages":[]})", "model"},
      {Endpoint::Chat, R"({"model":"m"})", "messages"},
      {Endpoint::Chat, R"({"messages":"x"})", "messages"},
      {Endpoint::Chat, R"({"messages":[],"stream":"yes"})", "stream"},
      {Endpoint::Chat, R"({"messages":[],"stream_options":[1]})", "stream_options"},
      {Endpoint::Chat, R"({"messages":[],"tools":{"a":1}})", "tools"},
      {Endpoint::Chat, R"({"messages":[],"chat_template_kwargs":[1]})", "chat_template_kwargs"},
      {Endpoint::Completions, R"({})", "prompt"},
      {Endpoint::Completions, R"({"prompt":[]})", "prompt"},
      {Endpoint::Completions, R"({"prompt":[1,-2]})", "prompt"},
      {Endpoint::Completions, R"({"prompt":[4294967296]})", "prompt"},
      {Endpoint::Completions, R"({"prompt":{"a":1}})", "prompt"},
  };
  for (const Case& c : cases) {
    const Error error = refused(c.endpoint, c.body);
    EXPECT_EQ(error.code, ErrorCode::InvalidArgument) << c.body;
    EXPECT_EQ(error.param, c.want_param) << c.body;
  }
  EXPECT_EQ(refused(Endpoint::Chat, "").code, ErrorCode::InvalidArgument);
  EXPECT_EQ(refused(Endpoint::Chat, "[1]").code, ErrorCode::InvalidArgument);
  EXPECT_EQ(refused(Endpoint::Chat, "{").code, ErrorCode::InvalidArgument);
}

TEST(ApiRequest, FieldsThatChangeThePromptAreNamedUnlessEmpty) {
  const auto given = parsed(Endpoint::Chat, R"({"messages":[],"mm_processor_kwargs":{"a":1}})");
  EXPECT_EQ(given.uncounted_field, "mm_processor_kwargs");
  const auto empty =
      parsed(Endpoint::Chat, R"({"messages":[],"mm_processor_kwargs":{},"chat_template":null})");
  EXPECT_FALSE(empty.uncounted_field.has_value());
  EXPECT_TRUE(parsed(Endpoint::Chat, R"({"messages":[],"prompt_logprobs":1})").skips_prefix_cache);
}

TEST(ApiRequest, AByteOrderMarkIsSkippedAndNotSentOn) {
  const auto request = parse_request(Endpoint::Chat, "\xEF\xBB\xBF{\"messages\":[]}", {});
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->document.text(), "{\"messages\":[]}");
}

TEST(ApiRequest, AnEmptyModelIsNone) {
  const auto request = parse_request(Endpoint::Chat, R"({"messages":[],"model":""})", {});
  ASSERT_TRUE(request.ok());
  EXPECT_FALSE(request->model.has_value());
}

TEST(ApiRequest, TransferParametersAreRefusedAndNullIsNone) {
  for (const char* given :
       {R"("kv_transfer_params":{})", R"("ec_transfer_params":1)",
        R"("vllm_xargs":{"kv_transfer_params":{}})", R"("bootstrap_host":"h")"}) {
    const auto request =
        parse_request(Endpoint::Chat, R"({"messages":[],)" + std::string(given) + "}", {});
    ASSERT_FALSE(request.ok()) << given;
    EXPECT_EQ(request.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(request.error().blame, Blame::Client);
  }
  EXPECT_TRUE(
      parse_request(Endpoint::Chat, R"({"messages":[],"kv_transfer_params":null})", {}).ok());
}

TEST(ApiRequest, TheValuesOfAChatBodyAreBounded) {
  std::string zeros = "0";
  for (std::size_t i = 1; i < kChatValuesMax; ++i) zeros += ",0";
  const auto chat = parse_request(Endpoint::Chat, R"({"messages":[],"x":[)" + zeros + "]}", {});
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.error().code, ErrorCode::TooLarge);
  EXPECT_TRUE(parse_request(Endpoint::Completions, R"({"prompt":[)" + zeros + "]}", {}).ok());
}

TEST(ApiRequest, UnreadMembersTakeNoMemory) {
  std::string zeros = "0";
  for (int i = 1; i < 400'000; ++i) zeros += ",0";
  ByteBudget budget(std::size_t{64} << 20U);
  for (const auto endpoint : {Endpoint::Chat, Endpoint::Completions}) {
    HeldBytes held(&budget);
    const auto request = parse_request(
        endpoint, R"({"messages":[],"prompt":"x","junk":[)" + zeros + "]}", {.memory = &held});
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_LT(held.bytes(), 10'000U);
  }
}

TEST(ApiRequest, TokenIdsTakeFourBytesEach) {
  std::string zeros = "0";
  for (int i = 1; i < 100'000; ++i) zeros += ",0";
  ByteBudget budget(std::size_t{64} << 20U);
  for (const std::string& prompt : {"[" + zeros + "]", "[[" + zeros + "],[1]]"}) {
    HeldBytes held(&budget);
    const auto request =
        parse_request(Endpoint::Completions, R"({"prompt":)" + prompt + "}", {.memory = &held});
    ASSERT_TRUE(request.ok()) << request.error().message;
    const auto* ids = std::get_if<std::vector<TokenId>>(&request->completion()->first_prompt);
    ASSERT_NE(ids, nullptr);
    EXPECT_EQ(ids->size(), 100'000U);
    EXPECT_LT(held.bytes(), 410'000U);
  }
}

TEST(ApiRequest, BodyStaysEditableAfterThePromptIsDropped) {
  const std::string body =
      R"({"messages":[{"role":"user","content":[{"type":"image_url",)"
      R"("image_url":{"url":"http://a/b"},"uuid":"mine"}]}],"stream":true,)"
      R"("stream_options":{"include_usage":false,"continuous_usage_stats":true},)"
      R"("vllm_xargs":{"a":{"b":1}},"tools":[{"a":1}]})";
  const auto edited = [&body](bool drops) {
    ByteBudget budget(std::size_t{1} << 20U);
    HeldBytes held(&budget);
    auto request = parse_request(Endpoint::Chat, body, {.memory = &held});
    EXPECT_TRUE(request.ok());
    const std::size_t before = held.bytes();
    if (drops) {
      drop_prompt(*request, &held);
      EXPECT_LT(held.bytes(), before);
    }
    EditedBody edit(request->document.text());
    set_uuid(edit, request->chat()->media.at(0), "ours");
    set_url(edit, request->chat()->media.at(0), "data:x");
    set_member(edit, request->document.root(), "extra", "1");
    set_member(edit, *request->document.root().find("vllm_xargs")->find("a"), "b", "2");
    ask_for_usage(edit, *request);
    std::string text;
    for (const std::string_view piece : edit.pieces()) text += piece;
    return text;
  };
  EXPECT_EQ(edited(true), edited(false));
}

}  // namespace
}  // namespace sightline::openai
