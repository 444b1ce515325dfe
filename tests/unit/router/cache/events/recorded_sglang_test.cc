// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// Recorded sessions of SGLang: the prediction from its events equals what it reused.
#include <algorithm>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "router/cache/index/exact_index.h"
#include "router/engine/sglang/sglang.h"
#include "tests/support/captures.h"
#include "tests/support/indexed.h"
#include "tests/support/playback.h"

namespace sightline::events {
namespace {

using test::CapturedPrompt;

constexpr CacheId kCache{3};

NormaliserOptions sglang_options(std::int64_t rank) {
  NormaliserOptions options;
  options.id = kCache;
  options.format = &sglang::sglang();
  options.model = "tiny";
  options.rank = rank;
  return options;
}

struct Session {
  const char* name;
  std::uint32_t page;
  std::size_t want_compared;
  std::size_t want_hits;  // of these, with cached tokens, on text
  // Predicted too high: the same tokens came under an extra_key, which events do not contain.
  std::set<std::int64_t> want_over = {};
};

void PrintTo(const Session& session, std::ostream* out) { *out << session.name; }

struct Outcome {
  std::size_t compared = 0;
  std::size_t hits = 0;
  std::set<std::int64_t> over;
  std::set<std::int64_t> under;
};

// For text, each prediction must be exact. After the first picture the prompt is unknown here.
void compare(const CapturedPrompt& prompt, std::int64_t predicted, Outcome& outcome) {
  ++outcome.compared;
  const bool has_media = !prompt.media.empty();
  if (predicted > *prompt.cached_tokens) outcome.over.insert(*prompt.n);
  if (predicted < *prompt.cached_tokens && !has_media) outcome.under.insert(*prompt.n);
  if (predicted == *prompt.cached_tokens && predicted > 0 && !has_media) ++outcome.hits;
}

std::int64_t predict(const test::Playback& playback, const CapturedPrompt& prompt) {
  std::vector<keys::MediaSpan> media;
  for (const auto& item : prompt.media) {
    media.push_back({keys::identifier_hash(item.identifier), item.offset, item.length});
  }
  std::optional<std::string> lora;
  if (prompt.model == "ad") lora = prompt.model;
  return playback.predict({prompt.token_ids, std::move(media), prompt.cache_salt, lora});
}

class RecordedSglangSession : public testing::TestWithParam<Session> {};

TEST_P(RecordedSglangSession, PredictionEqualsCachedTokensOfEachText) {
  const auto session = test::load_capture(GetParam().name);
  test::Playback first(session.messages, sglang_options(0));
  test::Playback second(session.messages_rank1, sglang_options(1));
  Outcome outcome;
  for (const CapturedPrompt& prompt : session.prompts) {
    if (!prompt.n) continue;  // sent at the same moment as another
    // These do not follow from events. The router edits these requests or claims no blocks.
    if (prompt.has_extra_key || prompt.several_samples || prompt.input_logprobs) continue;
    test::Playback& rank = prompt.rank == 1 ? second : first;
    rank.play_until(session.exchange(*prompt.n).started_s);
    compare(prompt, predict(rank, prompt), outcome);
  }
  EXPECT_EQ(outcome.compared, GetParam().want_compared);
  EXPECT_EQ(outcome.hits, GetParam().want_hits);
  EXPECT_EQ(outcome.over, GetParam().want_over);
  EXPECT_EQ(outcome.under, std::set<std::int64_t>{});
  first.play_until(1e18);
  const FeedStatus status = first.status();
  EXPECT_EQ(status.undecodable_messages, 0U);
  EXPECT_EQ(status.stream.gaps, 0U);
  EXPECT_EQ(status.facts.block_size, GetParam().page);
  EXPECT_EQ(status.normaliser.unknown_parent, 0U);
  EXPECT_EQ(status.normaliser.unknown_removal, 0U);
  EXPECT_EQ(status.normaliser.malformed, 0U);
  EXPECT_EQ(status.normaliser.conflicts, 0U);
  EXPECT_EQ(status.normaliser.ignored_type, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    All, RecordedSglangSession,
    testing::Values(Session{"sglang-qwen2vl-page16", 16, 60, 21, {30, 40}},
                    Session{"sglang-qwen2vl-page16-misc", 16, 5, 2},
                    Session{"sglang-qwen2vl-page1", 1, 37, 25, {30, 40}},
                    Session{"sglang-qwen2vl-page64", 64, 37, 16, {30}},
                    Session{"sglang-qwen2vl-page16-python-core", 16, 37, 20, {30, 40}},
                    Session{"sglang-qwen2vl-page16-preprocess-cache", 16, 7, 0},
                    Session{"sglang-qwen3vl-page16", 16, 7, 0},
                    Session{"sglang-qwen2-page16-evict", 16, 31, 10, {27}},
                    Session{"sglang-qwen2-page16-restart", 16, 3, 0},
                    Session{"sglang-qwen2-page16-hicache", 16, 49, 8},
                    Session{"sglang-qwen2-page16-lora", 16, 5, 1},
                    Session{"sglang-qwen2-page16-dp2", 16, 9, 5},
                    Session{"sglang-qwen2-page16-format-dynamo", 16, 13, 4, {7, 17}},
                    Session{"sglang-qwen2-page16-busy", 16, 4, 0},
                    Session{"sglang-qwen2-page16-chunked", 16, 4, 3},
                    Session{"sglang-qwen2-page16-overlap", 16, 26, 18}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// SGLang's tree, driven without a server: scenes of one publisher, named "TREE-SETTING-SCENE".
class TreeAlone : public testing::Test {
 protected:
  // The blocks held after each scene whose name has this prefix.
  std::vector<std::vector<keys::BlockKey>> after_each(const std::string& prefix) {
    index::ExactIndex index;
    NormaliserOptions options = sglang_options(0);
    test::IndexedNormaliser normaliser(std::move(options), scheme_, index);
    std::vector<std::vector<keys::BlockKey>> held;
    for (const auto& message : session_.messages) {
      if (!message.scenario.starts_with(prefix)) continue;
      const auto batch = sglang::sglang().decode(message.frames[2]);
      EXPECT_TRUE(batch.ok());
      normaliser.apply(*batch);
      held.push_back(index.held(kCache, operations::Tier::Gpu));
    }
    statistics_ = normaliser.statistics();
    upper_bound_ = normaliser.is_upper_bound();
    return held;
  }

  const test::CapturedSession session_ = test::load_capture("sglang-inproc");
  const keys::Scheme scheme_{contract::development_identity_key()};
  NormaliserStatistics statistics_;
  bool upper_bound_ = false;
};

TEST_F(TreeAlone, BothTreesOfSglangMeanTheSame) {
  for (const std::string setting : {"page1-", "page16-", "page64-"}) {
    const auto rust = after_each("rust-" + setting);
    EXPECT_EQ(statistics_.malformed + statistics_.conflicts + statistics_.unknown_parent, 0U);
    const auto python = after_each("python-" + setting);
    EXPECT_EQ(rust, python) << setting;
    ASSERT_GE(rust.size(), 8U);
    EXPECT_GT(rust[1].size(), 1U);
    // The last scenes evict all blocks and reset, also blocks that were stored twice under one
    // hash.
    EXPECT_TRUE(rust[rust.size() - 2].empty()) << setting;
    EXPECT_EQ(statistics_.unknown_removal, 0U) << setting;
    EXPECT_FALSE(upper_bound_);
  }
}

TEST_F(TreeAlone, AdaptersAndSaltsAreOtherPrompts) {
  for (const std::string format : {"lora-default-", "lora-dynamo-"}) {
    const auto held = after_each(format);
    ASSERT_EQ(held.size(), 7U);
    EXPECT_EQ(held[2].size(), 2 * held[1].size()) << "base and adapter";
    EXPECT_EQ(held[3].size(), 3 * held[1].size()) << "and the adapter with a salt";
    EXPECT_TRUE(held.back().empty()) << format;
  }
}

TEST_F(TreeAlone, OfPairsOfTokensTheClaimIsAnUpperBound) {
  const auto held = after_each("eagle-");
  ASSERT_EQ(held.size(), 3U);
  EXPECT_EQ(held[1].size(), 3U);
  EXPECT_EQ(held[2].size(), 4U);
  EXPECT_TRUE(upper_bound_);
  EXPECT_EQ(statistics_.malformed, 0U);
}

}  // namespace
}  // namespace sightline::events
