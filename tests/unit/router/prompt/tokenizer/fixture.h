// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/prompt/tokenizer/tokenizer.h"

namespace sightline::tokenizer {

// Reads an unpacked file of tests/data/tokenizers.
std::string read_test_file(std::string_view name);

// Returns the tokenizer "qwen3" or "qwen2_5". Each is loaded once per process.
const Tokenizer& test_tokenizer(std::string_view family);

// Returns a complete tokenizer.json with the 256 bytes (ids 0 to 255), "ab" (256) and the added
// token "<x>" (257).
std::string small_model_file();

// Returns the ids of a text. If the tokenizer rejects it, the test fails.
std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text);

}  // namespace sightline::tokenizer
