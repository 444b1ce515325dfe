// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/tokenizer/tokenizer.h"

namespace sightline::tokenizer {

// An unpacked file of tests/data/tokenizers.
std::string read_test_file(std::string_view name);

// The tokenizer "qwen3" or "qwen2_5"; loaded once per process.
const Tokenizer& test_tokenizer(std::string_view family);

// The ids of text; the test fails if it is refused.
std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text);

}  // namespace sightline::tokenizer
