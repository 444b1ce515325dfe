// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/prompt/tokenizer/vocabulary.h"

namespace sightline::tokenizer {

// The pre-tokenizer pattern of Qwen2 and Qwen3 (and their VL models).
inline constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

// left and right become result. The rank of a merge is its place in the list; lower goes first.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId result = 0;
};

// What a tokenizer.json says, checked: a byte-level BPE model with kQwenPattern.
struct ModelFile {
  Vocabulary vocabulary;      // by bytes, not by the file's byte alphabet; added tokens included
  std::vector<Merge> merges;  // no pair twice
  std::vector<AddedToken> added_tokens;
  bool nfc = false;  // normalise each stretch between added tokens
};

// Errors: InvalidArgument with the place in the document (a JSON pointer), TooLarge, Unsupported
// naming the setting that is not done exactly here.
Result<ModelFile> parse_model_file(std::string_view tokenizer_json);

}  // namespace sightline::tokenizer
