// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/answer.h"

#include <gtest/gtest.h>

#include "common/base/json.h"

#include "tests/support/captures.h"

namespace sightline::api {
namespace {

// The greedy answers of the recorded model consist of these two tokens.
constexpr TokenId kEvenToken = 135749;
constexpr TokenId kOddToken = 128698;
const std::string kEvenText = "ฟา";
const std::string kOddText = "сс";

std::string text_at(std::size_t position) { return position % 2 == 0 ? kEvenText : kOddText; }
TokenId token_at(std::size_t position) { return position % 2 == 0 ? kEvenToken : kOddToken; }

std::size_t number(const json::Value& object, std::string_view name) {
  const auto value = object.find(name);
  return value ? static_cast<std::size_t>(value->integer().value_or(0)) : 0;
}

AnswerUsage usage_in(const json::Value& usage) {
  AnswerUsage out{.prompt_tokens = number(usage, "prompt_tokens"),
                  .completion_tokens = number(usage, "completion_tokens")};
  const auto details = usage.find("prompt_tokens_details");
  out.cached_tokens = number(*details, "cached_tokens");
  out.created_tokens = number(*details, "created_cache_tokens");
  const auto media = details->find("multimodal_tokens");
  if (media && media->is(json::Kind::Object)) out.image_tokens = number(*media, "image");
  return out;
}

// Puts our fingerprint in the place of the recorded one.
std::string with_our_fingerprint(std::string body) {
  const std::string theirs = "vllm-0.32.0-db5ed264";
  const std::size_t at = body.find(theirs);
  return at == std::string::npos ? body : body.replace(at, theirs.size(), "vllm-0.32.0-simulate");
}

AnswerHead head_in(const json::Value& answer, AnswerKind kind) {
  return {.kind = kind,
          .id = std::string(*answer.find("id")->string()),
          .created = *answer.find("created")->integer(),
          .model = std::string(*answer.find("model")->string())};
}

void add_ids(const json::Value& answer, AnswerHead& head) {
  const auto ids = answer.find("prompt_token_ids");
  if (!ids || !ids->is(json::Kind::Array)) return;
  head.with_token_ids = true;
  for (const json::Value id : *ids) {
    head.prompt_token_ids.push_back(static_cast<TokenId>(*id.integer()));
  }
}

TEST(Answer, WholeChatAnswersEqualTheRecordedOnes) {
  const auto session = test::load_capture("qwen2vl-main");
  // A short text, decode blocks with token ids, an image, a request id, and n = 1 without an
  // adapter.
  for (const std::int64_t n : {1, 23, 34, 109, 185, 245}) {
    const auto& exchange = session.exchange(n);
    const auto document = json::Document::parse(exchange.response_body);
    ASSERT_TRUE(document.ok()) << n;
    const json::Value answer = document->root();
    AnswerHead head = head_in(answer, AnswerKind::Chat);
    add_ids(answer, head);
    const AnswerUsage usage = usage_in(*answer.find("usage"));
    Choice choice;
    for (std::size_t i = 0; i < usage.completion_tokens; ++i) {
      choice.text += text_at(i);
      choice.token_ids.push_back(token_at(i));
    }
    EXPECT_EQ(whole_answer(head, std::span(&choice, 1), usage),
              with_our_fingerprint(exchange.response_body))
        << n;
  }
}

TEST(Answer, WholeCompletionEqualsTheRecordedOne) {
  const auto exchange = test::load_capture("qwen2vl-main").exchange(33);
  const auto document = json::Document::parse(exchange.response_body);
  const json::Value answer = document->root();
  const Choice choice{.text = "سفيرhints"};
  EXPECT_EQ(whole_answer(head_in(answer, AnswerKind::Completion), std::span(&choice, 1),
                         usage_in(*answer.find("usage"))),
            with_our_fingerprint(exchange.response_body));
}

struct StreamCase {
  std::int64_t n;
  bool include_usage;
  bool continuous_usage;
  AnswerUsage usage;
};

std::string first_payload(const std::string& stream) {
  return stream.substr(6, stream.find("\n\n") - 6);
}

TEST(Answer, StreamsEqualTheRecordedOnes) {
  const auto session = test::load_capture("qwen2vl-main");
  for (const StreamCase& test : {
           StreamCase{173, true, false, {121, 6, 0, 96, 0}},
           StreamCase{176, true, true, {121, 3, 96, 0, 0}},
           StreamCase{177, false, false, {121, 3, 96, 0, 0}},
           StreamCase{178, true, false, {58, 4, 0, 32, 30}},
           StreamCase{179, true, false, {58, 3, 32, 0, 30}},
       }) {
    const std::string& recorded = session.exchange(test.n).response_body;
    const auto document = json::Document::parse(first_payload(recorded));
    AnswerHead head = head_in(document->root(), AnswerKind::Chat);
    add_ids(document->root(), head);
    const AnswerStream stream(
        head, {.include_usage = test.include_usage, .continuous_usage = test.continuous_usage});
    AnswerUsage usage = test.usage;
    const std::size_t tokens = std::exchange(usage.completion_tokens, 0);
    std::string text = stream.opening(0, usage);
    for (std::size_t i = 0; i < tokens; ++i) {
      ++usage.completion_tokens;
      const std::string word = text_at(i);
      text += stream.token({.text = word, .id = token_at(i), .last = i + 1 == tokens}, usage);
    }
    text += stream.closing(usage);
    EXPECT_EQ(text, with_our_fingerprint(recorded)) << test.n;
  }
}

TEST(Answer, CompletionStreamsCarryTextAndEndWithUsage) {
  const AnswerStream stream({.kind = AnswerKind::Completion, .id = "cmpl-1", .model = "m"},
                            {.include_usage = true});
  EXPECT_EQ(stream.opening(0, {}), "");
  const std::string token = stream.token({.index = 1, .text = "a\"b", .last = true}, {});
  EXPECT_TRUE(token.starts_with("data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\""));
  EXPECT_NE(token.find(R"("choices":[{"index":1,"text":"a\"b")"), std::string::npos);
  const std::string closing = stream.closing({.prompt_tokens = 5, .completion_tokens = 2});
  EXPECT_NE(closing.find(R"("choices":[],"usage":{"prompt_tokens":5,"total_tokens":7)"),
            std::string::npos);
  EXPECT_TRUE(closing.ends_with("data: [DONE]\n\n"));
}

TEST(Answer, OneAnswerHoldsSeveralChoices) {
  const std::vector<Choice> choices{{.index = 0, .text = "a"}, {.index = 1, .text = "b"}};
  const auto document = json::Document::parse(whole_answer({.id = "x"}, choices, {}));
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->root().find("choices")->size(), 2U);
}

}  // namespace
}  // namespace sightline::api
