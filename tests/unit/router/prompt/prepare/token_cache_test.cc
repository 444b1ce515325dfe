// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/prepare/token_cache.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/support/paths.h"

namespace sightline::prepare {
namespace {

using tokenizer::Tokenizer;
using Tokens = std::vector<TokenId>;

constexpr std::size_t kNoTokensMax = 1U << 30U;
constexpr std::uint64_t kRoomyBytes = 64U << 20U;

const Tokenizer& qwen() {
  static const auto tokenizer = [] {
    std::ifstream file(test::in_build("models/tiny-qwen2-vl/tokenizer.json"), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    auto created = Tokenizer::create(text);
    EXPECT_TRUE(created.ok());
    return std::move(created).value();
  }();
  return *tokenizer;
}

Tokens plain(std::string_view text) {
  Tokens tokens;
  EXPECT_TRUE(qwen().encode(text, tokens).ok());
  return tokens;
}

// A cache with its metrics.
struct Cached {
  explicit Cached(std::uint64_t bytes_max) : cache(qwen(), {.bytes_max = bytes_max}, metrics) {}

  Tokens encode(std::string_view text) {
    Tokens tokens;
    const auto fits = cache.encode(text, {.tokens_max = kNoTokensMax}, tokens);
    EXPECT_TRUE(fits.ok() && *fits);
    return tokens;
  }

  // Returns the value of a metric by the beginning of its line.
  [[nodiscard]] double metric(const std::string& name) const {
    std::istringstream lines(metrics.scrape());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
    }
    return -1;
  }
  [[nodiscard]] double hit_bytes() const {
    return metric("sightline_token_cache_text_bytes_total{result=\"hit\"}");
  }
  [[nodiscard]] double miss_bytes() const {
    return metric("sightline_token_cache_text_bytes_total{result=\"miss\"}");
  }
  [[nodiscard]] double bytes() const { return metric("sightline_token_cache_bytes"); }
  [[nodiscard]] double evictions() const { return metric("sightline_token_cache_evictions_total"); }

  runtime::Metrics metrics;
  TokenCache cache;
};

// Words, marks, contractions, runs of blanks, several scripts, added tokens and parts of them.
std::string random_text(Rng& rng, std::size_t size) {
  static constexpr std::string_view kParts[] = {
      " the",       " of",   "tion",    "don't",  "'s",           "'RE",    "\n",
      "\n\n",       "  ",    "    ",    "\t",     "42",           "7",      ", ",
      ". ",         "...",   "e\u0301", "\u00E9", "\u4F60\u597D", "\u3002", "\u0958",
      "<|im_end|>", "<|im_", "<",       "|>",     "\U0001F600",   "x",      "\r\n",
      "==",         " (",    "_name",   "\u0301", "<tool_call>"};
  std::string text;
  while (text.size() < size) {
    const std::string_view part = kParts[rng.below(std::size(kParts))];
    const std::uint32_t repeats = rng.below(10) == 0 ? rng.below(60) : 1;
    for (std::uint32_t i = 0; i < repeats; ++i) text += part;
  }
  return text;
}

std::string words(Rng& rng, std::size_t size) {
  std::string text;
  while (text.size() < size) text += "word" + std::to_string(rng.below(100'000)) + " and ";
  return text;
}

TEST(TokenCache, GivesTheIdsOfTheTokenizerForConversationsThatGrow) {
  Cached cached(kRoomyBytes);
  Rng rng(1);
  for (int round = 0; round < 15; ++round) {
    std::string text = "<|im_start|>system\n" + random_text(rng, rng.below(6000)) + "<|im_end|>\n";
    for (int turn = 0; turn < 8; ++turn) {
      text += "<|im_start|>user\n" + random_text(rng, rng.below(9000)) + "<|im_end|>\n";
      ASSERT_EQ(cached.encode(text), plain(text));
    }
  }
  EXPECT_GT(cached.hit_bytes(), 500'000);
}

TEST(TokenCache, GivesTheIdsOfTheTokenizerForTextCutAnywhere) {
  Cached cached(kRoomyBytes);
  Rng rng(2);
  for (int round = 0; round < 20; ++round) {
    const std::string text = random_text(rng, 30'000);
    for (int cut = 0; cut < 20; ++cut) {
      std::size_t size = rng.below(30'000);
      while ((static_cast<std::uint8_t>(text[size]) & 0xC0U) == 0x80U) --size;
      ASSERT_EQ(cached.encode(text.substr(0, size)), plain(text.substr(0, size)));
    }
  }
}

TEST(TokenCache, GivesTheIdsOfTheTokenizerWhileItEvicts) {
  Cached cached(1U << 20U);
  Rng rng(3);
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.push_back(random_text(rng, 20'000));
  for (int round = 0; round < 400; ++round) {
    const std::string& text = texts[rng.below(rng.below(200) + 1)];
    ASSERT_EQ(cached.encode(text), plain(text));
  }
  EXPECT_GT(cached.evictions(), 0);
  EXPECT_LE(cached.bytes(), 1U << 20U);
  EXPECT_GT(cached.bytes(), (1U << 20U) * 3 / 4);
}

// Texts with few or many ids for their size: runs, words without a break, marks that NFC joins.
std::vector<std::string> texts_without_a_break() {
  std::vector<std::string> texts;
  for (const char* part : {"a", " ", "\n", "=", "1", "\u4F60", "e\u0301", "\u1112\u1161\u11AB",
                           "\u212A", "abcdefghij", "<|im_end|>", "\U0001F600"}) {
    std::string text;
    while (text.size() < 200'000) text += part;
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(TokenCache, RefusesExactlyTextsAboveTheLimit) {
  Rng rng(12);
  std::vector<std::string> texts = texts_without_a_break();
  for (int i = 0; i < 10; ++i) texts.push_back(random_text(rng, rng.below(50'000) + 1));
  for (const std::uint64_t bytes_max : {std::uint64_t{0}, kRoomyBytes}) {
    Cached cached(bytes_max);
    for (const std::string& text : texts) {
      const Tokens want = plain(text);
      Tokens tokens;
      const auto all = cached.cache.encode(text, {.tokens_max = want.size()}, tokens);
      ASSERT_TRUE(all.ok());
      EXPECT_TRUE(*all) << text.substr(0, 20);
      EXPECT_EQ(tokens, want);
      for (const std::size_t tokens_max : {want.size() - 1, want.size() / 100}) {
        Tokens part;
        const auto fits = cached.cache.encode(text, {.tokens_max = tokens_max}, part);
        ASSERT_TRUE(fits.ok());
        EXPECT_FALSE(*fits) << text.substr(0, 20);
      }
    }
  }
}

TEST(TokenCache, DoesNotTokenizeAWordThatCannotFit) {
  Cached cached(kRoomyBytes);
  for (const std::string& text : texts_without_a_break()) {
    Tokens tokens;
    const auto fits = cached.cache.encode(text, {.tokens_max = 100}, tokens);
    ASSERT_TRUE(fits.ok());
    EXPECT_FALSE(*fits);
    // At most the limit is tokenized, in pieces.
    EXPECT_LE(tokens.size(), 100 + tokenizer::Pieces::kBytes) << text.substr(0, 20);
  }
}

TEST(TokenCache, EndsWhenTheClientHasLeft) {
  Cached cached(kRoomyBytes);
  std::stop_source left;
  left.request_stop();
  Tokens tokens;
  const auto fits =
      cached.cache.encode("hello", {.tokens_max = 100, .left = left.get_token()}, tokens);
  ASSERT_FALSE(fits.ok());
  EXPECT_EQ(fits.error().code, ErrorCode::Cancelled);
}

TEST(TokenCache, RefusesTheSameTextsAsTheTokenizer) {
  for (const std::uint64_t bytes_max : {std::uint64_t{0}, kRoomyBytes}) {
    Cached cached(bytes_max);
    Tokens tokens;
    EXPECT_EQ(cached.cache.encode("a\xFF", {}, tokens).error().code, ErrorCode::InvalidArgument);
    EXPECT_TRUE(tokens.empty());
  }
}

TEST(TokenCache, GrownTextIsTokenizedFromItsLastPiece) {
  Cached cached(kRoomyBytes);
  Rng rng(5);
  const std::string text = words(rng, 100'000);
  EXPECT_EQ(cached.encode(text), plain(text));
  EXPECT_EQ(cached.hit_bytes(), 0);
  const double misses = cached.miss_bytes();
  const std::string longer = text + words(rng, 1000);
  EXPECT_EQ(cached.encode(longer), plain(longer));
  EXPECT_LT(cached.miss_bytes() - misses, 1000 + 2 * tokenizer::Pieces::kBytes);
  EXPECT_EQ(cached.hit_bytes() + cached.miss_bytes(),
            static_cast<double>(text.size() + longer.size()));
}

TEST(TokenCache, MessageIsFoundAtAnyPlace) {
  Cached cached(kRoomyBytes);
  Rng rng(6);
  const std::string message = "<|im_start|>tool" + words(rng, 20'000) + "<|im_end|>";
  cached.encode(message);
  const std::string elsewhere = words(rng, 3000) + message;
  EXPECT_EQ(cached.encode(elsewhere), plain(elsewhere));
  EXPECT_GE(cached.hit_bytes(), 20'000);
}

TEST(TokenCache, KeepsNothingWithoutRoom) {
  Cached cached(0);
  Rng rng(7);
  const std::string text = words(rng, 10'000);
  EXPECT_EQ(cached.encode(text), plain(text));
  EXPECT_EQ(cached.encode(text), plain(text));
  EXPECT_EQ(cached.hit_bytes(), 0);
  EXPECT_EQ(cached.bytes(), 0);
}

TEST(TokenCache, OneTextTakesAtMostItsShare) {
  Cached cached(kRoomyBytes);
  Rng rng(8);
  const std::string text = words(rng, 4U << 20U);
  EXPECT_EQ(cached.encode(text), plain(text));
  EXPECT_LE(cached.bytes(), kRoomyBytes / 32);
  EXPECT_GT(cached.bytes(), kRoomyBytes / 64);
}

TEST(TokenCache, NewTextsDoNotEvictRepeatedTexts) {
  Cached cached(4U << 20U);
  Rng rng(9);
  const std::string ours = words(rng, 50'000);
  cached.encode(ours);
  cached.encode(ours);
  for (int i = 0; i < 120; ++i) cached.encode(words(rng, 100'000));
  EXPECT_GT(cached.evictions(), 500);
  const double hits = cached.hit_bytes();
  EXPECT_EQ(cached.encode(ours), plain(ours));
  EXPECT_GT(cached.hit_bytes() - hits, 45'000);
}

TEST(TokenCache, UnusedTextsAreEvictedInTheEnd) {
  Cached cached(4U << 20U);
  Rng rng(10);
  const std::string old = words(rng, 50'000);
  cached.encode(old);
  cached.encode(old);
  for (int i = 0; i < 120; ++i) {
    const std::string text = words(rng, 100'000);
    cached.encode(text);
    cached.encode(text);
  }
  const double hits = cached.hit_bytes();
  cached.encode(old);
  EXPECT_EQ(cached.hit_bytes(), hits);
  EXPECT_LE(cached.bytes(), 4U << 20U);
}

TEST(TokenCache, ManyThreadsGetTheIdsOfTheTokenizer) {
  Cached cached(1U << 20U);
  Rng rng(11);
  std::vector<std::string> texts;
  std::vector<Tokens> want;
  for (int i = 0; i < 60; ++i) {
    texts.push_back(random_text(rng, 20'000));
    want.push_back(plain(texts.back()));
  }
  std::vector<int> wrong(4);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
      threads.emplace_back([&, t] {
        Rng order(t);
        for (int i = 0; i < 120; ++i) {
          const std::uint32_t k = order.below(60);
          Tokens tokens;
          const bool done =
              cached.cache.encode(texts[k], {.tokens_max = kNoTokensMax}, tokens).ok();
          wrong[t] += done && tokens == want[k] ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4));
  EXPECT_LE(cached.bytes(), 1U << 20U);
}

}  // namespace
}  // namespace sightline::prepare
