// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

namespace sightline::tokenizer {
class Tokenizer;
}

namespace sightline::core {

// The words that simulated engines answer with: tokens of the model's vocabulary whose text turns
// into the same tokens again, so that an answer sent back in the next turn hits the blocks that
// decoding filled. Immutable: any thread.
class OutputWords {
 public:
  // Chooses plain lower-case words. Errors: Unsupported if the vocabulary has too few of them.
  static Result<std::shared_ptr<const OutputWords>> create(const tokenizer::Tokenizer& tokenizer);

  struct Word {
    TokenId token = 0;
    std::string text;
  };
  // Each list at least one entry: words without and with a blank in front.
  OutputWords(std::vector<Word> first, std::vector<Word> following);

  // The position-th word of the answer that seed stands for.
  [[nodiscard]] const Word& word(std::uint64_t seed, std::size_t position) const;
  [[nodiscard]] std::string_view text_of(TokenId token) const;

 private:
  std::vector<Word> first_;
  std::vector<Word> following_;
  std::unordered_map<TokenId, std::string> texts_;
};

// Stands for a prompt: equal prompts, equal answers.
std::uint64_t answer_seed(const std::vector<TokenId>& prompt, std::uint32_t sample);

}  // namespace sightline::core
