// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/prompt/model/expand.h"
#include "router/prompt/model/image_tokens.h"
#include "simulator/processor/expansion.h"
#include "tests/integration/expansion/models.h"

namespace sightline::test {
namespace {

using model::Certainty;
using processor::ExpandedPrompt;
using Ids = std::vector<TokenId>;

constexpr TokenId kNoToken = UINT32_MAX;  // for audio, which has no placeholder here

// One prompt, as both sides get it.
struct Case {
  Ids rendered;
  std::vector<model::MediaItem> media;
  std::vector<processor::Item> items;  // the same, with their true lengths
  std::size_t tokens_max = SIZE_MAX;
};

Ids placeholders_of(const processor::Checkpoint& checkpoint) {
  return {*checkpoint.image_token, *checkpoint.video_token};
}

TokenId placeholder_of(const processor::Checkpoint& checkpoint, model::PlaceholderKind modality) {
  if (modality == model::PlaceholderKind::Image) return *checkpoint.image_token;
  return modality == model::PlaceholderKind::Video ? *checkpoint.video_token : kNoToken;
}

void add_item(Case& prompt, const processor::Checkpoint& checkpoint,
              model::PlaceholderKind modality, std::uint32_t tokens) {
  prompt.media.push_back({modality, "item", tokens});
  prompt.items.push_back({placeholder_of(checkpoint, modality), tokens});
}

// Text with placeholders, and a number of items that fits them. By chance, one is missing or one
// too many.
Case random_case(Rng& rng, const processor::Checkpoint& checkpoint) {
  Case prompt;
  for (std::uint32_t left = rng.below(30); left > 0; --left) {
    if (rng.below(4) != 0) {
      prompt.rendered.push_back(rng.below(1000));
      continue;
    }
    const auto modality =
        rng.below(4) == 0 ? model::PlaceholderKind::Video : model::PlaceholderKind::Image;
    prompt.rendered.push_back(placeholder_of(checkpoint, modality));
    if (rng.below(25) == 0) continue;
    add_item(prompt, checkpoint, modality, 1 + rng.below(8));
  }
  if (rng.below(15) == 0) {
    const auto modality = static_cast<model::PlaceholderKind>(rng.below(3));
    add_item(prompt, checkpoint, modality, 1 + rng.below(8));
  }
  return prompt;
}

Result<model::Prompt> seen_by_router(const Case& prompt, const ModelPair& model) {
  return model::expand({prompt.rendered, prompt.tokens_max}, prompt.media,
                       model.router.placeholders);
}

Result<ExpandedPrompt> seen_by_engine(const Case& prompt, const ModelPair& model) {
  return processor::expand(prompt.rendered, prompt.items, placeholders_of(model.engine));
}

bool same_runs(const std::vector<model::PlaceholderSpan>& spans,
               const std::vector<processor::Run>& runs) {
  return std::equal(spans.begin(), spans.end(), runs.begin(), runs.end(),
                    [](const model::PlaceholderSpan& span, const processor::Run& run) {
                      return span.item == run.item && span.start == run.offset &&
                             span.length == run.length;
                    });
}

// Why the two sides differ about a prompt, empty if they agree. Every length is known.
std::string difference(const Case& prompt, const ModelPair& model) {
  const auto router = seen_by_router(prompt, model);
  const auto engine = seen_by_engine(prompt, model);
  const std::size_t length = engine.ok() ? engine->tokens.size() : prompt.rendered.size();
  if (length > prompt.tokens_max) {
    const bool is_refused = !router.ok() && router.error().code == ErrorCode::TooLarge;
    return is_refused ? "" : "the router takes a prompt that is too long";
  }
  if (!router.ok()) return "the router refuses: " + router.error().message;
  if (!engine.ok()) {
    const bool claims_nothing = router->certainty == Certainty::Mismatch &&
                                router->exact_tokens == 0 && router->spans.empty() &&
                                router->tokens == prompt.rendered;
    return claims_nothing ? "" : "the router claims what the engine refuses";
  }
  if (router->certainty != Certainty::Exact) return "the router is uncertain";
  if (router->tokens != engine->tokens) return "other ids";
  if (router->exact_tokens != engine->tokens.size()) return "not all ids exact";
  return same_runs(router->spans, engine->runs) ? "" : "other spans";
}

TEST(Prompts, RandomOnesAreTheSameOnBothSides) {
  Rng rng(21);
  std::size_t refused = 0;
  for (const ModelPair& model : all_models()) {
    for (int round = 0; round < 10'000; ++round) {
      const Case prompt = random_case(rng, model.engine);
      refused += seen_by_engine(prompt, model).ok() ? 0 : 1;
      ASSERT_EQ(difference(prompt, model), "") << model.name << ", round " << round;
    }
  }
  EXPECT_GT(refused, 4'000U);
  EXPECT_LT(refused, 20'000U);
}

TEST(Prompts, TooLongOnesAreRefusedFromTheSameLength) {
  Rng rng(22);
  std::size_t too_long = 0;
  for (const ModelPair& model : all_models()) {
    for (int round = 0; round < 10'000; ++round) {
      Case prompt = random_case(rng, model.engine);
      const auto engine = seen_by_engine(prompt, model);
      const std::size_t length = engine.ok() ? engine->tokens.size() : prompt.rendered.size();
      prompt.tokens_max = length + 2 - std::min<std::size_t>(length + 2, rng.below(5));
      too_long += length > prompt.tokens_max ? 1 : 0;
      ASSERT_EQ(difference(prompt, model), "") << model.name << ", round " << round;
    }
  }
  EXPECT_GT(too_long, 10'000U);
}

// From the sizes to the prompt: the engine's counts equal the placeholders in its prompt.
TEST(Prompts, OfSeveralPicturesAreTheSameOnBothSides) {
  Rng rng(23);
  for (const ModelPair& model : all_models()) {
    for (int round = 0; round < 500; ++round) {
      Case prompt;
      for (std::uint32_t left = 1 + rng.below(5); left > 0; --left) {
        const std::uint32_t width = 10 + rng.below(1200);
        const std::uint32_t height = 10 + rng.below(1200);
        const auto by_router =
            model::count_image_tokens(model.router, {.width = width, .height = height});
        const auto by_engine =
            processor::grid_of(*model.engine.images, {.width = width, .height = height});
        ASSERT_TRUE(by_router.ok() && by_engine.ok()) << width << "x" << height;
        prompt.rendered.insert(prompt.rendered.end(),
                               {rng.below(1000), *model.engine.image_token, rng.below(1000)});
        prompt.media.push_back({model::PlaceholderKind::Image, "picture", by_router->tokens});
        prompt.items.push_back({*model.engine.image_token, by_engine->tokens()});
      }
      ASSERT_EQ(difference(prompt, model), "") << model.name << ", round " << round;
    }
  }
}

// If the router does not know an item's length, the part that it is certain of must begin the
// engine's prompt.
TEST(Prompts, PartlyKnownOnesBeginAsTheEnginesDo) {
  Rng rng(24);
  std::size_t partly_known = 0;
  for (const ModelPair& model : all_models()) {
    for (int round = 0; round < 10'000; ++round) {
      Case prompt = random_case(rng, model.engine);
      for (auto& item : prompt.media) {
        if (rng.below(3) == 0) item.tokens.reset();
      }
      const auto engine = seen_by_engine(prompt, model);
      const auto router = seen_by_router(prompt, model);
      ASSERT_TRUE(router.ok());
      ASSERT_EQ(engine.ok(), router->certainty != Certainty::Mismatch);
      if (!engine.ok()) continue;
      const std::size_t known = router->exact_tokens;
      partly_known += known < engine->tokens.size() ? 1 : 0;
      ASSERT_LE(known, engine->tokens.size());
      ASSERT_TRUE(std::equal(router->tokens.begin(),
                             router->tokens.begin() + static_cast<std::ptrdiff_t>(known),
                             engine->tokens.begin()));
      const std::size_t spans = router->spans.size();
      ASSERT_LE(spans, engine->runs.size());
      ASSERT_TRUE(same_runs(
          router->spans,
          {engine->runs.begin(), engine->runs.begin() + static_cast<std::ptrdiff_t>(spans)}));
      for (std::size_t i = spans; i < engine->runs.size(); ++i) {
        ASSERT_GE(engine->runs[i].offset, known);
      }
    }
  }
  EXPECT_GT(partly_known, 10'000U);
}

}  // namespace
}  // namespace sightline::test
