// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Real engines' messages into the index, real prompts against it: the prediction must equal the
// engine's own cached_tokens.

#include <algorithm>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "router/cache/events/event_feed.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/keys/block_key.h"
#include "router/cache/wire/batch_codec.h"
#include "tests/support/playback.h"

namespace sightline::events {
namespace {

using test::CapturedMessage;
using test::CapturedPrompt;
using test::CapturedSession;
using test::Playback;

constexpr CacheId kEngine{3};
// Placeholders of vision, image and video in Qwen2-VL's vocabulary.
const std::vector<TokenId> kQwenMediaTokens = {151655, 151656};

NormaliserOptions options_of(CacheId engine, std::vector<TokenId> media_tokens) {
  return {.id = engine,
          .model = "tiny",
          .media_tokens = std::move(media_tokens),
          .run_tokens = {kQwenMediaTokens[0]}};
}

std::int64_t predict(const Playback& playback, const CapturedPrompt& prompt) {
  std::vector<keys::MediaSpan> media;
  for (const auto& item : prompt.media) {
    media.push_back({keys::identifier_hash(item.identifier), item.offset, item.length});
  }
  std::optional<std::string> lora;
  if (prompt.model == "ad") lora = prompt.model;
  return playback.predict({prompt.token_ids, std::move(media), prompt.cache_salt, lora});
}

constexpr double kEndOfTime_s = 1e18;

struct Outcome {
  std::size_t compared = 0;
  std::int64_t hit_tokens = 0;            // predicted and true
  std::set<std::int64_t> overestimates;   // exchanges predicted above the truth
  std::set<std::int64_t> underestimates;  // and below
  FeedStatus status;
};

Outcome replay(const CapturedSession& session, const std::vector<CapturedPrompt>& prompts,
               std::vector<TokenId> media_tokens, bool leaves_zero_out = false) {
  Outcome outcome;
  Playback playback(session.messages, options_of(kEngine, std::move(media_tokens)));
  for (const auto& prompt : prompts) {
    if (!prompt.n) continue;
    const auto& exchange = session.exchange(*prompt.n);
    const auto usage = test::usage_of(exchange, leaves_zero_out);
    if (!usage) continue;
    EXPECT_EQ(usage->prompt_tokens, static_cast<std::int64_t>(prompt.token_ids.size()));
    playback.play_until(exchange.started_s);
    const auto predicted = predict(playback, prompt);
    ++outcome.compared;
    if (predicted > usage->cached_tokens) outcome.overestimates.insert(*prompt.n);
    if (predicted < usage->cached_tokens) outcome.underestimates.insert(*prompt.n);
    if (predicted == usage->cached_tokens) outcome.hit_tokens += predicted;
  }
  playback.play_until(kEndOfTime_s);
  outcome.status = playback.status();
  return outcome;
}

void expect_nothing_unclear(const FeedStatus& status,
                            std::uint32_t block_size = test::kCapturedBlockSize) {
  EXPECT_EQ(status.undecodable_messages, 0U);
  EXPECT_EQ(status.stream.gaps, 0U);
  EXPECT_EQ(status.facts.block_size, block_size);
  EXPECT_FALSE(status.facts.block_size_conflict.has_value());
  const auto& counts = status.normaliser;
  EXPECT_EQ(counts.unknown_parent, 0U);
  EXPECT_EQ(counts.unknown_content, 0U);
  EXPECT_EQ(counts.unknown_length, 0U);
  EXPECT_EQ(counts.unknown_removal, 0U);
  EXPECT_EQ(counts.malformed, 0U);
  EXPECT_EQ(counts.conflicts, 0U);
  EXPECT_EQ(counts.ignored_type, 0U);
}

struct QwenCase {
  const char* session;
  std::size_t want_compared;
  std::int64_t want_hit_tokens;
  // The engine had dropped more than it had announced. It announces a reset only with its next
  // step, and a restarted engine is silent until its first store.
  std::set<std::int64_t> want_overestimates;
};

void PrintTo(const QwenCase& test, std::ostream* out) { *out << test.session; }

class RecordedQwenSession : public testing::TestWithParam<QwenCase> {};

TEST_P(RecordedQwenSession, PredictionEqualsCachedTokensOfEveryExchange) {
  const auto session = test::load_capture(GetParam().session);
  const auto outcome = replay(session, session.prompts, kQwenMediaTokens);
  EXPECT_EQ(outcome.compared, GetParam().want_compared);
  EXPECT_EQ(outcome.hit_tokens, GetParam().want_hit_tokens);
  EXPECT_EQ(outcome.overestimates, GetParam().want_overestimates);
  EXPECT_EQ(outcome.underestimates, std::set<std::int64_t>{});
  expect_nothing_unclear(outcome.status);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedQwenSession,
                         testing::Values(QwenCase{"qwen2vl-main", 87, 3040, {245, 255}},
                                         QwenCase{"qwen2vl-evict", 29, 864, {26}},
                                         QwenCase{"qwen2vl-duplicates", 18, 256, {}},
                                         QwenCase{"qwen2vl-bytes-cbor", 10, 320, {}},
                                         QwenCase{"qwen2vl-lora", 6, 128, {}},
                                         QwenCase{"qwen2vl-no-processor-cache", 4, 192, {}}),
                         [](const auto& test) {
                           std::string name = test.param.session;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// vLLM before 0.32. Up to 0.23 it leaves out a count of zero. Each session has one exchange
// predicted too high: the first after POST /reset_prefix_cache. AllBlocksCleared only comes with
// the step of that request.
struct OlderCase {
  const char* session;
  std::size_t want_compared;
  std::int64_t want_hit_tokens;
  std::set<std::int64_t> want_overestimates;
  bool leaves_zero_out;
  std::uint32_t block_size = test::kCapturedBlockSize;
};

void PrintTo(const OlderCase& test, std::ostream* out) { *out << test.session; }

class RecordedOlderSession : public testing::TestWithParam<OlderCase> {};

TEST_P(RecordedOlderSession, PredictionEqualsCachedTokensOfEveryExchange) {
  const auto& test = GetParam();
  const auto session = test::load_capture(test.session);
  const auto outcome = replay(session, session.prompts, kQwenMediaTokens, test.leaves_zero_out);
  EXPECT_EQ(outcome.compared, test.want_compared);
  EXPECT_EQ(outcome.hit_tokens, test.want_hit_tokens);
  EXPECT_EQ(outcome.overestimates, test.want_overestimates);
  EXPECT_EQ(outcome.underestimates, std::set<std::int64_t>{});
  expect_nothing_unclear(outcome.status, test.block_size);
}

INSTANTIATE_TEST_SUITE_P(All, RecordedOlderSession,
                         testing::Values(OlderCase{"vllm-0.17.1-qwen2vl", 21, 896, {49}, true},
                                         OlderCase{"vllm-0.19.1-qwen2vl", 21, 896, {49}, true},
                                         OlderCase{
                                             "vllm-0.19.1-qwen2vl-evict", 24, 1152, {}, true, 128},
                                         OlderCase{"vllm-0.23.0-qwen2vl", 21, 896, {49}, true},
                                         OlderCase{"vllm-0.23.0-qwen2vl-evict", 24, 2464, {}, true},
                                         OlderCase{"vllm-0.26.0-qwen2vl", 21, 896, {49}, false},
                                         OlderCase{"vllm-0.29.0-qwen2vl", 21, 896, {49}, false}),
                         [](const auto& test) {
                           std::string name = test.param.session;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

// Each of the requests sent at the same moment sees one of two states: the cache before all of
// them, or with the first of them.
TEST(RecordedSessions, ConcurrentRequestsSeeTheCacheBeforeOrAfterTheFirst) {
  for (const auto* name : {"qwen2vl-main", "qwen2vl-evict"}) {
    SCOPED_TRACE(name);
    const auto session = test::load_capture(name);
    Playback playback(session.messages, options_of(kEngine, kQwenMediaTokens));
    std::multiset<std::int64_t> cached;
    double started_s = kEndOfTime_s;
    for (const auto& exchange : session.exchanges) {
      if (exchange.n || exchange.status != 200) continue;
      started_s = std::min(started_s, exchange.started_s);
      cached.insert(test::usage_of(exchange)->cached_tokens);
    }
    const auto prompt = std::find_if(session.prompts.begin(), session.prompts.end(),
                                     [](const auto& candidate) { return !candidate.n; });
    ASSERT_NE(prompt, session.prompts.end());
    playback.play_until(started_s);
    const auto before = predict(playback, *prompt);
    playback.play_until(started_s + 1);
    const auto after = predict(playback, *prompt);
    std::multiset<std::int64_t> want = {before};
    while (want.size() < cached.size()) want.insert(after);
    EXPECT_LT(before, after);
    EXPECT_EQ(cached, want);
  }
}

TEST(RecordedSessions, LlavaPredictionsEqualCachedTokens) {
  const auto session = test::load_capture("llava-1.5");
  const auto outcome = replay(session, test::prompts_from_renderings(session), {32000});
  EXPECT_EQ(outcome.compared, 8U);
  EXPECT_GT(outcome.hit_tokens, 0);
  EXPECT_TRUE(outcome.overestimates.empty());
  EXPECT_TRUE(outcome.underestimates.empty());
  expect_nothing_unclear(outcome.status);
}

TEST(RecordedSessions, GemmaAnnouncesBothGroupsAndOnlyFullAttentionCounts) {
  const auto session = test::load_capture("gemma3");
  std::size_t sliding = 0;
  std::size_t full = 0;
  for (const auto& message : session.messages) {
    const auto batch = wire::decode_batch(message.frames[2]);
    ASSERT_TRUE(batch.ok());
    for (const auto& event : batch->events) {
      const auto* stored = std::get_if<BlockStored>(&event);
      ASSERT_NE(stored, nullptr);
      if (stored->group == 0) {
        EXPECT_EQ(stored->kind, SpecKind::Other);
        ++sliding;
      } else {
        EXPECT_EQ(stored->group, 1);
        EXPECT_EQ(stored->kind, SpecKind::Full);
        full += stored->hashes.size();
      }
    }
  }
  EXPECT_EQ(sliding, 6U);
  const auto outcome = replay(session, test::prompts_from_renderings(session), {262144});
  EXPECT_EQ(outcome.status.normaliser.ignored_group, sliding);
  EXPECT_EQ(outcome.status.normaliser.blocks_stored, full);
  EXPECT_EQ(outcome.compared, 8U);
  EXPECT_GT(outcome.hit_tokens, 0);
  EXPECT_TRUE(outcome.overestimates.empty());
  EXPECT_TRUE(outcome.underestimates.empty());
}

TEST(RecordedSessions, RanksOfOneWorkerAreTwoCachesWithOneIdentity) {
  const auto session = test::load_capture("qwen2vl-dp2");
  for (const auto& [messages, rank] :
       {std::pair(session.messages, 0), std::pair(session.messages_rank1, 1)}) {
    for (const auto& message : messages) {
      EXPECT_EQ(wire::decode_batch(message.frames[2])->rank, rank);
    }
  }
  Playback rank0(session.messages, options_of({0}, kQwenMediaTokens));
  Playback rank1(session.messages_rank1, options_of({1}, kQwenMediaTokens));
  // Exchanges 2 and 3 are one prompt, sent to rank 0 and rank 1 by header.
  rank0.play_until(session.exchange(3).started_s);
  rank1.play_until(session.exchange(3).started_s);
  EXPECT_EQ(rank0.index().blocks({0}), 4U);
  EXPECT_EQ(rank1.index().blocks({1}), 0U);
  rank1.play_until(session.exchange(4).started_s);
  EXPECT_EQ(rank0.index().held({0}, operations::Tier::Gpu),
            rank1.index().held({1}, operations::Tier::Gpu));
  rank0.play_until(kEndOfTime_s);
  rank1.play_until(kEndOfTime_s);
  expect_nothing_unclear(rank0.status());
  expect_nothing_unclear(rank1.status());
}

TEST(RecordedSessions, ThreeCopiesOfABlockNeedThreeRemovals) {
  const auto session = test::load_capture("qwen2vl-duplicates");
  Playback playback(session.messages, options_of(kEngine, kQwenMediaTokens));
  playback.play_until(kEndOfTime_s);
  EXPECT_GE(playback.status().normaliser.copies_added, 3U);
  EXPECT_EQ(playback.status().normaliser.unknown_removal, 0U);
}

TEST(RecordedSessions, ServerLevelKeywordsStillDecode) {
  for (const auto* name :
       {"qwen2vl-server-media-io-kwargs", "qwen2vl-server-mm-processor-kwargs"}) {
    SCOPED_TRACE(name);
    const auto session = test::load_capture(name);
    Playback playback(session.messages, options_of(kEngine, kQwenMediaTokens));
    playback.play_until(kEndOfTime_s);
    expect_nothing_unclear(playback.status());
    EXPECT_EQ(playback.status().facts.sequence, 2U);
  }
}

}  // namespace
}  // namespace sightline::events
