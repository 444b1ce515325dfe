// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Sends the recorded bodies of real clients through the router's parser, media reader, template,
// tokenizer and expansion. The tokens must equal those of the engine that got the bodies. The
// prediction from these tokens and the engine's events must equal its cached_tokens.

#include <fstream>
#include <iterator>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "common/contract/identity_key.h"

#include "router/prompt/prepare/prepare.h"
#include "tests/support/paths.h"
#include "tests/support/playback.h"

namespace sightline::prepare {
namespace {

using test::CapturedExchange;
using test::CapturedPrompt;
using test::CapturedSession;
using test::Playback;

const LoadedModel& tiny_model() {
  static const auto model = [] {
    auto loaded = load_model(test::in_build("models/tiny-qwen2-vl"));
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    return std::move(loaded).value();
  }();
  return *model;
}

// The recorded media server returned this one image for all its URLs.
std::shared_ptr<const Bytes> served_picture() {
  std::ifstream stream(test::in_sources("tests/data/images/b_224x168.png"), std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_FALSE(content.empty());
  return std::make_shared<const Bytes>(content.begin(), content.end());
}

Result<Prepared> prepared_from(const openai::ApiRequest& request) {
  const contract::IdentityKey key = contract::development_identity_key();
  const LoadedModel& model = tiny_model();
  Downloads downloads;
  for (const openai::MediaPart& part : request.chat()->media) {
    const bool remote = part.url->string()->starts_with("http");
    downloads.push_back(remote ? served_picture() : nullptr);
  }
  auto media = SL_TRY(resolve_media(request, downloads, {.profile = model.profile, .key = key}));
  return prepare_prompt(model, request, std::move(media), {});
}

const CapturedPrompt* recorded_prompt(const CapturedSession& session, std::int64_t n) {
  for (const CapturedPrompt& prompt : session.prompts) {
    if (prompt.n == n) return &prompt;
  }
  return nullptr;
}

// Returns the spans with the identifiers of the engine, because the sessions were recorded without
// the router's. If no identifiers were recorded, the router's are used.
std::vector<keys::MediaSpan> spans_of(const Prepared& ours, const CapturedPrompt* recorded) {
  std::vector<keys::MediaSpan> spans;
  for (std::size_t i = 0; i < ours.prompt.spans.size(); ++i) {
    const model::PlaceholderSpan& span = ours.prompt.spans[i];
    const std::string& identifier =
        recorded != nullptr ? recorded->media.at(i).identifier : ours.media[span.item].identifier;
    spans.push_back({keys::identifier_hash(identifier), static_cast<std::int64_t>(span.start),
                     static_cast<std::int64_t>(span.length)});
  }
  return spans;
}

bool is_same(const Prepared& ours, const CapturedPrompt& recorded) {
  bool same =
      ours.prompt.tokens == recorded.token_ids && ours.prompt.spans.size() == recorded.media.size();
  for (std::size_t i = 0; same && i < recorded.media.size(); ++i) {
    const model::PlaceholderSpan& span = ours.prompt.spans[i];
    same = static_cast<std::int64_t>(span.start) == recorded.media[i].offset &&
           static_cast<std::int64_t>(span.length) == recorded.media[i].length;
  }
  return same;
}

struct Outcome {
  std::size_t compared = 0;
  std::set<std::int64_t> refused;    // uuid without bytes: the router needs the bytes
  std::set<std::int64_t> uncounted;  // kwargs that change the prompt: no overlap is claimed
  std::set<std::int64_t> differing;  // tokens or spans that differ from the engine's
  std::set<std::int64_t> over;
  std::set<std::int64_t> under;
};

void run_exchange(const CapturedSession& session, const CapturedExchange& exchange,
                  Playback& playback, Outcome& outcome) {
  // vLLM up to 0.23 does this. Later releases report the count in all of these exchanges.
  constexpr bool leaves_zero_out = true;
  const std::int64_t n = *exchange.n;
  SCOPED_TRACE(session.name + " n=" + std::to_string(n) + " " + exchange.scenario);
  const auto request = openai::parse_request(openai::Endpoint::Chat, exchange.request_body, {});
  if (!request.ok()) {
    EXPECT_NE(request.error().message.find("uuid"), std::string::npos) << request.error().message;
    outcome.refused.insert(n);
    return;
  }
  const auto ours = prepared_from(*request);
  ASSERT_TRUE(ours.ok()) << ours.error().message;
  if (ours->gap == Gap::UncountedField) {
    outcome.uncounted.insert(n);
    return;
  }
  ASSERT_TRUE(ours->is_exact()) << name_of(ours->gap);
  const auto usage = test::usage_of(exchange, leaves_zero_out);
  const CapturedPrompt* recorded = recorded_prompt(session, n);
  const auto spans = spans_of(*ours, recorded);
  if (recorded != nullptr && !is_same(*ours, *recorded)) outcome.differing.insert(n);
  if (!usage) return;
  const auto tokens = static_cast<std::int64_t>(ours->prompt.tokens.size());
  if (tokens != usage->prompt_tokens) outcome.differing.insert(n);
  std::optional<std::string> lora;
  if (request->model == "ad") lora = "ad";
  playback.play_until(exchange.started_s);
  const std::int64_t predicted =
      playback.predict({ours->prompt.tokens, spans, request->cache_salt, lora});
  ++outcome.compared;
  if (predicted > usage->cached_tokens) outcome.over.insert(n);
  if (predicted < usage->cached_tokens) outcome.under.insert(n);
}

struct SessionCase {
  const char* session;
  std::size_t want_compared;
  std::set<std::int64_t> want_refused;
  std::set<std::int64_t> want_uncounted;
  // The client's uuid named other bytes. The engine therefore answered from the image that it had
  // under this name. This is the reason why the router never forwards a client's uuid.
  std::set<std::int64_t> want_differing;
  std::set<std::int64_t> want_over;  // the engine had evicted more than it had announced
};

void PrintTo(const SessionCase& test, std::ostream* out) { *out << test.session; }

class RecordedPrompts : public testing::TestWithParam<SessionCase> {};

TEST_P(RecordedPrompts, OwnTokensPredictTheEnginesCachedTokens) {
  const CapturedSession session = test::load_capture(GetParam().session);
  Playback playback(session.messages, {.id = CacheId{1},
                                       .model = "tiny",
                                       .media_tokens = {151655, 151656},
                                       .run_tokens = {151655}});
  Outcome outcome;
  for (const CapturedExchange& exchange : session.exchanges) {
    const bool chat = exchange.path == "/v1/chat/completions" && exchange.method == "POST";
    if (!chat || !exchange.n || exchange.status != 200) continue;
    run_exchange(session, exchange, playback, outcome);
  }
  EXPECT_EQ(outcome.compared, GetParam().want_compared);
  EXPECT_EQ(outcome.refused, GetParam().want_refused);
  EXPECT_EQ(outcome.uncounted, GetParam().want_uncounted);
  EXPECT_EQ(outcome.differing, GetParam().want_differing);
  EXPECT_EQ(outcome.over, GetParam().want_over);
  EXPECT_EQ(outcome.under, std::set<std::int64_t>{});
}

INSTANTIATE_TEST_SUITE_P(
    All, RecordedPrompts,
    testing::Values(
        SessionCase{"qwen2vl-main", 80, {118, 119, 121, 122, 128, 245, 251}, {}, {}, {255}},
        SessionCase{"qwen2vl-evict", 28, {16}, {}, {29, 30}, {26}},
        SessionCase{"qwen2vl-duplicates", 18, {}, {}, {19, 20}, {}},
        SessionCase{"qwen2vl-bytes-cbor", 10, {}, {26, 27, 29}, {}, {}},
        SessionCase{"qwen2vl-lora", 6, {}, {}, {}, {}},
        SessionCase{"qwen2vl-no-processor-cache", 4, {}, {}, {}, {}},
        SessionCase{"qwen2vl-server-media-io-kwargs", 2, {3}, {}, {}, {}},
        SessionCase{"qwen2vl-server-mm-processor-kwargs", 2, {3}, {}, {}, {}},
        SessionCase{"vllm-0.17.1-qwen2vl", 21, {29}, {}, {}, {49}},
        SessionCase{"vllm-0.19.1-qwen2vl", 21, {29}, {}, {}, {49}},
        SessionCase{"vllm-0.19.1-qwen2vl-evict", 24, {}, {}, {}, {}},
        SessionCase{"vllm-0.23.0-qwen2vl", 21, {29}, {}, {}, {49}},
        SessionCase{"vllm-0.23.0-qwen2vl-evict", 24, {}, {}, {}, {}},
        SessionCase{"vllm-0.26.0-qwen2vl", 21, {29}, {}, {}, {49}},
        SessionCase{"vllm-0.29.0-qwen2vl", 21, {29}, {}, {}, {49}}),
    [](const auto& test) {
      std::string name = test.param.session;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
      return name;
    });

// Two data-parallel ranks are two caches with their own events. The label names the rank of a
// request. Without a label the engine chose the rank, and no rank held these prompts. The engine
// named the image by the client's uuid.
TEST(RecordedPrompts, EachDataParallelRankIsACacheOfItsOwn) {
  const CapturedSession session = test::load_capture("qwen2vl-dp2");
  Playback rank0(session.messages, {.id = CacheId{1}, .model = "tiny"});
  Playback rank1(session.messages_rank1, {.id = CacheId{2}, .model = "tiny"});
  std::size_t hits = 0;
  for (const std::int64_t n : {2, 3, 4, 5, 7, 8, 9, 10, 11}) {
    const CapturedExchange& exchange = session.exchange(n);
    const bool is_known = exchange.label.starts_with("rank");
    Playback& rank = exchange.label.starts_with("rank 1") ? rank1 : rank0;
    const auto request = openai::parse_request(openai::Endpoint::Chat, exchange.request_body, {});
    ASSERT_TRUE(request.ok());
    const auto ours = prepared_from(*request);
    ASSERT_TRUE(ours.ok() && ours->is_exact());
    auto spans = spans_of(*ours, nullptr);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto uuid = request->chat()->media.at(i).part.find("uuid")->string();
      spans[i].id = keys::identifier_hash(*uuid);
    }
    rank0.play_until(exchange.started_s);
    rank1.play_until(exchange.started_s);
    const auto usage = test::usage_of(exchange);
    EXPECT_EQ(static_cast<std::int64_t>(ours->prompt.tokens.size()), usage->prompt_tokens);
    EXPECT_EQ(rank.predict({ours->prompt.tokens, spans, {}, {}}), usage->cached_tokens) << n;
    if (!is_known) {
      EXPECT_EQ(rank1.predict({ours->prompt.tokens, spans, {}, {}}), usage->cached_tokens) << n;
    }
    hits += usage->cached_tokens > 0 ? 1 : 0;
  }
  EXPECT_EQ(hits, 2U);
}

}  // namespace
}  // namespace sightline::prepare
