// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "common/base/rng.h"

namespace sightline::tokenizer {

// A text of up to pieces_max pieces that are likely to meet a rule: letters of several scripts,
// combining marks, digits, blanks and newlines in runs, contractions, punctuation, emoji, added
// tokens and parts of them. Every character is in Unicode 9.0.
std::string random_text(Rng& rng, std::uint32_t pieces_max);

}  // namespace sightline::tokenizer
