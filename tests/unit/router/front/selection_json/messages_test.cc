// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection_json/messages.h"

#include <string>

#include <gtest/gtest.h>

#include "router/front/selection_json/keys_text.h"
#include "tests/support/selection_bytes.h"

namespace sightline::selection_json {
namespace {

template <class Value, class EachOf>
std::string bytes_of(const Value& value, EachOf each_of) {
  test::BytesOut out;
  each_of(value, [&](const auto& member) { out.put(member); });
  return out.take();
}

selection::Inquiry full_inquiry() {
  selection::Inquiry inquiry;
  inquiry.keys = std::make_shared<const std::vector<keys::BlockKey>>(
      std::vector<keys::BlockKey>{{1}, {0x1fffffffffffffffULL}, {0}});
  inquiry.job = {.prompt_tokens = 1'000'000'007, .block_size = 16};
  inquiry.first_prompt_tokens = 50;
  inquiry.images = {{3, 4}, {7, 0}, {1'000, 30}};
  inquiry.adapter = "ad \"x\"";
  inquiry.unpredictable[1] = true;
  inquiry.is_exact = true;
  inquiry.tried = {.failed = {"a", "b"}, .again = "c"};
  return inquiry;
}

TEST(SelectionJson, AskSurvivesTheWire) {
  for (const bool is_full : {true, false}) {
    SelectionAsk ask;
    if (is_full) {
      ask.inquiry = full_inquiry();
      ask.identity = "key=1";
      ask.reservation = leases::Name{"f", 7, 1};
      ask.lease = std::chrono::seconds(30);
    } else {
      ask.inquiry.is_read = false;
    }
    const auto read = read_ask(write_ask(ask));
    ASSERT_TRUE(read.ok()) << read.error().message;
    const auto each = [](const auto& inquiry, auto put) {
      test::each_of_inquiry(inquiry, put);
      put(*inquiry.keys);
    };
    EXPECT_EQ(bytes_of(read->inquiry, each), bytes_of(ask.inquiry, each));
    EXPECT_EQ(read->identity, ask.identity);
    EXPECT_EQ(read->reservation, ask.reservation);
    EXPECT_EQ(read->lease, ask.lease);
    EXPECT_FALSE(read->tokens);
  }
}

TEST(SelectionJson, RefusesImagesThatAreNoOrderedSpans) {
  for (const char* images : {"[3]", "[[3]]", "[[3,4,5]]", "[[-1,4]]", "[[1,\"4\"]]",
                             "[[0,4],[3,4]]", "[[0,1099511627777]]", "7"}) {
    const auto read = read_ask(R"({"keys":"","images":)" + std::string(images) + "}");
    ASSERT_FALSE(read.ok()) << images;
    EXPECT_NE(read.error().message.find("images"), std::string::npos) << read.error().message;
  }
}

TEST(SelectionJson, TokenPromptTakesImagesOnlyAsMedia) {
  const auto read = read_ask(R"({"token_ids":[1,2,3],"images":[[0,1]]})");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().param, "images");
}

TEST(SelectionJson, ReadsTokenPromptWithItsMedia) {
  const auto ask = read_ask(
      R"({"token_ids":[1,2,3,4294967295],"media":[{"identifier":"i","start":1,"length":2}]})");
  ASSERT_TRUE(ask.ok()) << ask.error().message;
  EXPECT_EQ(ask->tokens->tokens, (std::vector<TokenId>{1, 2, 3, 4294967295U}));
  ASSERT_EQ(ask->tokens->media.size(), 1U);
  EXPECT_EQ(ask->tokens->media[0].id, keys::identifier_hash("i"));
  EXPECT_EQ(ask->tokens->media[0].length, 2);
  EXPECT_EQ(ask->inquiry.job.prompt_tokens, 4U);
}

TEST(SelectionJson, RefusesInvalidFieldsByName) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"[]", ""},
      {R"({"keys":"AAAA"})", "keys"},
      {R"({"keys":"!"})", "keys"},
      {R"({"keys":5})", "keys"},
      {R"({"keys":"","token_ids":[]})", "keys"},
      {R"({"token_ids":[-1]})", "token_ids"},
      {R"({"token_ids":[4294967296]})", "token_ids"},
      {R"({"token_ids":[1],"media":[{"identifier":"i","start":1,"length":1}]})", "media"},
      {R"({"token_ids":[1,2],"media":[{"identifier":"i","start":1,"length":1},
           {"identifier":"i","start":0,"length":1}]})",
       "media"},
      {R"({"prompt_tokens":-1})", "prompt_tokens"},
      {R"({"block_size":0})", "block_size"},
      {R"({"block_size":1048577})", "block_size"},
      {R"({"read":1})", "read"},
      {R"({"failed":[1]})", "failed"},
      {R"({"unpredictable":["x"]})", "unpredictable"},
      {R"({"reservation":"x"})", "reservation"},
      {R"({"lease_s":0})", "lease_s"},
      {R"({"lease_s":601})", "lease_s"},
      {R"({})", "prompt_tokens"},
      {R"({"keys":""})", "prompt_tokens"},
      {R"({"prompt_tokens":9223372036854775807})", "prompt_tokens"},
      {R"({"prompt_tokens":1073741825})", "prompt_tokens"},
      {R"({"prompt_tokens":0,"first_prompt_tokens":512})", "first_prompt_tokens"},
      {R"({"keys":"AAAAAAAAAAA=","prompt_tokens":15,"block_size":16})", "keys"},
      {R"({"keys":"AAAAAAAAAAA=","prompt_tokens":99,"first_prompt_tokens":15,"block_size":16})",
       "keys"},
      {R"({"adapter":")" + std::string(kNameBytesMax + 1, 'x') + R"("})", "adapter"}};
  for (const auto& [body, param] : refused) {
    const auto ask = read_ask(body);
    ASSERT_FALSE(ask.ok()) << body;
    EXPECT_EQ(ask.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(ask.error().param, param) << body;
  }
}

TEST(SelectionJson, SelectionSurvivesTheWire) {
  selection::Selection sent;
  sent.worker = "w\n0";
  sent.host = "::1";
  sent.port = 65535;
  sent.rank = 3;
  sent.family = contract::EngineFamily::Sglang;
  sent.overlap_blocks = 7;
  sent.prompt_blocks = 9;
  sent.block_size = 16;
  sent.reason = "draw";
  sent.score.cost.total_blocks = 0.1;
  sent.score.spread_blocks = 1e300;
  const auto read = read_selection(write_selection(sent, leases::Name{"f", 1, 0}));
  ASSERT_TRUE(read.ok()) << read.error().message;
  const auto each = [](const auto& selection, auto put) {
    test::each_of_selection(selection, put);
  };
  EXPECT_EQ(bytes_of(*read, each), bytes_of(sent, each));
  EXPECT_FALSE(read_selection("{}").ok());
}

TEST(SelectionJson, EndingSurvivesTheWire) {
  selection::Ending failed;
  failed.kind = selection::Ending::Kind::Failed;
  failed.failure = worker_error(ErrorCode::Timeout, "silent \"engine\"", true);
  failed.request_id = "r";
  selection::Ending answered;
  answered.kind = selection::Ending::Kind::Answered;
  answered.status = 200;
  answered.usage = openai::Usage{.prompt_tokens = 5, .completion_tokens = 6, .cached_tokens = 4};
  answered.first_token = std::chrono::milliseconds(1'250);
  for (const selection::Ending& sent : {failed, answered, selection::Ending{}}) {
    const auto read = read_ending(write_ending(sent));
    ASSERT_TRUE(read.ok()) << read.error().message;
    const auto each = [](const auto& ending, auto put) { test::each_of_ending(ending, put); };
    EXPECT_EQ(bytes_of(*read, each), bytes_of(sent, each));
  }
  EXPECT_TRUE(read_ending("{}").ok()) << "nothing was learnt";
  EXPECT_FALSE(read_ending(R"({"kind":"other"})").ok());
  EXPECT_FALSE(read_ending(R"({"failure":{}})").ok());
}

TEST(SelectionJson, ExplanationSurvivesTheWire) {
  selection::Explanation sent;
  sent.reason = "least_cost";
  sent.chosen = 1;
  sent.entries.resize(2);
  sent.entries[0].worker = "a";
  sent.entries[0].state = "down";
  sent.entries[1].worker = "b";
  sent.entries[1].rank = 1;
  sent.entries[1].state = "ready";
  sent.entries[1].is_eligible = true;
  sent.entries[1].candidate.gpu_blocks = 4;
  sent.entries[1].candidate.kv_usage = 0.3;
  sent.entries[1].score.cost.total_blocks = 1.0 / 3;
  const std::string text = write_explanation(sent);
  const auto read = read_explanation(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(write_explanation(*read), text);
  EXPECT_EQ(read->entries[1].score.cost.total_blocks, 1.0 / 3);
  EXPECT_FALSE(read_explanation(R"({"reason":"x","chosen":0,"workers":[]})").ok());
}

TEST(SelectionJson, ErrorSurvivesTheWire) {
  const Error sent{ErrorCode::Unavailable, Blame::Worker, true, "no \"x\"", "p", "l"};
  const auto read = read_error(write_error(sent));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, sent.code);
  EXPECT_EQ(read->blame, sent.blame);
  EXPECT_TRUE(read->retryable);
  EXPECT_EQ(read->message, sent.message);
  EXPECT_EQ(read->param, sent.param);
  EXPECT_EQ(read->limit, sent.limit);
  EXPECT_FALSE(read_error(R"({"error":{"message":"of somebody else"}})"));
  EXPECT_FALSE(read_error(R"({"cause":{"code":"x"}})"));
}

TEST(SelectionJson, LimitsTheNumberOfKeys) {
  const std::vector<keys::BlockKey> keys(5, keys::BlockKey{9});
  EXPECT_EQ(*read_keys(write_keys(keys), 5), keys);
  EXPECT_FALSE(read_keys(write_keys(keys), 4).ok());
  EXPECT_EQ(read_keys("", 4)->size(), 0U);
}

}  // namespace
}  // namespace sightline::selection_json
