// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/output_words.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/rng.h"

#include "router/prompt/tokenizer/tokenizer.h"

namespace sightline::core {
namespace {

constexpr std::size_t kWordsMax = 512;
constexpr std::size_t kWordsMin = 16;
constexpr std::size_t kLettersMin = 4;

bool is_plain_word(std::string_view text) {
  return text.size() >= kLettersMin &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

Result<std::shared_ptr<const OutputWords>> OutputWords::create(
    const tokenizer::Tokenizer& tokenizer) {
  std::vector<Word> first;
  std::vector<Word> following;
  const auto vocabulary = static_cast<TokenId>(tokenizer.vocabulary_size());
  std::vector<TokenId> again;
  for (TokenId id = 0; id < vocabulary; ++id) {
    const std::string text = tokenizer.decode(std::span(&id, 1));
    const bool blank = !text.empty() && text.front() == ' ';
    auto& list = blank ? following : first;
    if (list.size() >= kWordsMax || !is_plain_word(std::string_view(text).substr(blank ? 1 : 0))) {
      continue;
    }
    again.clear();
    // The text alone must give this one token. Otherwise an answer that a client sends back would
    // not
    // have the tokens that decoding cached.
    if (!tokenizer.encode(text, again) || again != std::vector{id}) continue;
    list.push_back({id, text});
    if (first.size() == kWordsMax && following.size() == kWordsMax) break;
  }
  if (std::min(first.size(), following.size()) < kWordsMin) {
    return client_error(ErrorCode::Unsupported,
                        "the tokenizer has too few plain English words for answers");
  }
  return std::make_shared<const OutputWords>(std::move(first), std::move(following));
}

OutputWords::OutputWords(std::vector<Word> first, std::vector<Word> following)
    : first_(std::move(first)), following_(std::move(following)) {
  SL_CHECK(!first_.empty() && !following_.empty());
  for (const auto* list : {&first_, &following_}) {
    for (const Word& word : *list) texts_.emplace(word.token, word.text);
  }
}

const OutputWords::Word& OutputWords::word(std::uint64_t seed, std::size_t position) const {
  // Only the first word has no leading blank. The blanks keep the words apart when the answer is
  // tokenized again.
  const auto& list = position == 0 ? first_ : following_;
  return list[Rng(seed + position).below(static_cast<std::uint32_t>(list.size()))];
}

std::string_view OutputWords::text_of(TokenId token) const {
  const auto found = texts_.find(token);
  return found == texts_.end() ? std::string_view() : std::string_view(found->second);
}

std::uint64_t answer_seed(const std::vector<TokenId>& prompt, std::uint32_t sample) {
  std::uint64_t seed = sample;
  // The order of the tokens counts. A permuted prompt gets another seed.
  for (const TokenId token : prompt) seed = Rng(seed ^ token).next();
  return seed;
}

}  // namespace sightline::core
