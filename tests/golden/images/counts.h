// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <filesystem>

#include "router/prompt/model/model_directory.h"
#include "router/prompt/tokenizer/tokenizer.h"
#include "tests/golden/images/table.h"

namespace sightline::golden {

// The profile of a model directory below tests/data/models.
model::ModelProfile profile_of(const std::string& model);

// Compares expansions with a table of the Hugging Face processor's: the prompt is tokenized, the
// sizes are counted, and every id of the result is compared; errors must be errors.
Tally check_expansions(const std::filesystem::path& table, const model::ModelProfile& profile,
                       const tokenizer::Tokenizer& tokenizer);

// Compares counts with those of the engine for the rows of one family.
Tally check_engine_counts(const std::filesystem::path& table, const std::string& family,
                          const model::ModelProfile& profile);

}  // namespace sightline::golden
