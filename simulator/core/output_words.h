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

// The words of the answers of simulated engines. They are tokens of the model's vocabulary whose
// text is tokenized to the same tokens again. If a client sends an answer back in its next turn,
// the prompt then hits the blocks that decoding filled. Immutable: any thread may use it.
class OutputWords {
 public:
  // Chooses words of lower-case letters. Errors: Unsupported if the vocabulary has too few of them.
  static Result<std::shared_ptr<const OutputWords>> create(const tokenizer::Tokenizer& tokenizer);

  // A token of the vocabulary and its text.
  struct Word {
    TokenId token = 0;
    std::string text;
  };
  // Words without and with a leading blank. Each list needs at least one.
  OutputWords(std::vector<Word> first, std::vector<Word> following);

  // Returns the word at a position of the answer that belongs to the seed.
  [[nodiscard]] const Word& word(std::uint64_t seed, std::size_t position) const;
  // Returns the text of a token of these words. Any other token has an empty text.
  [[nodiscard]] std::string_view text_of(TokenId token) const;

 private:
  std::vector<Word> first_;
  std::vector<Word> following_;
  std::unordered_map<TokenId, std::string> texts_;
};

// Returns the seed for a prompt. Equal prompts have equal answers. `sample` is the number of an
// answer
// of the same request, and each sample has another answer.
std::uint64_t answer_seed(const std::vector<TokenId>& prompt, std::uint32_t sample);

}  // namespace sightline::core
