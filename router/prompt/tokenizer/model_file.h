// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/prompt/tokenizer/vocabulary.h"

namespace sightline::tokenizer {

// The pre-tokenizer pattern of Qwen2, Qwen3 and their VL models.
inline constexpr std::string_view kQwenPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

// `left` and `right` become `result`. The rank of a merge is its index in the list. The lowest rank
// comes first.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  TokenId result = 0;
};

// The checked contents of a tokenizer.json: a byte-level BPE model with kQwenPattern.
struct ModelFile {
  // By bytes, and not by the file's byte alphabet. It includes the added tokens.
  Vocabulary vocabulary;
  // Each pair occurs once, or MergeTable::create() rejects the list.
  std::vector<Merge> merges;
  std::vector<AddedToken> added_tokens;
  // True if each stretch between added tokens is normalized to NFC.
  bool nfc = false;
};

// Reads a tokenizer.json. Pure. Errors:
// - InvalidArgument with the place in the document (a JSON pointer),
// - TooLarge,
// - Unsupported, with the name of a setting that this tokenizer does not implement exactly.
Result<ModelFile> parse_model_file(std::string_view tokenizer_json);

}  // namespace sightline::tokenizer
