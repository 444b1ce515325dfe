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

namespace sightline::tokenizer {

// The plainest way from text to ids, for comparison. It runs the file's own regular expression with
// PCRE2. It looks merges up as text in the file's byte alphabet. ICU makes NFC of the whole
// stretch. It has Unicode up to 9.0, as the tested module has. Newer characters may differ.
class NaiveTokenizer {
 public:
  // tokenizer_json is a file of tests/data/tokenizers.
  explicit NaiveTokenizer(const std::string& tokenizer_json);
  ~NaiveTokenizer();

  std::vector<TokenId> encode(std::string_view text) const;
  // Returns the ends of the words of a text, by the regular expression alone.
  std::vector<std::uint32_t> word_ends(std::string_view text) const;
  // Encodes one word by byte-pair encoding.
  std::vector<TokenId> encode_word(std::string_view word) const;

 private:
  struct Pattern;
  void encode_stretch(std::string_view text, std::vector<TokenId>& out) const;

  std::unordered_map<std::string, TokenId> vocabulary_;
  std::unordered_map<std::string, std::size_t> ranks_;  // by "left right"
  std::vector<std::pair<std::string, TokenId>> added_;
  std::vector<std::string> alphabet_;  // by byte
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace sightline::tokenizer
