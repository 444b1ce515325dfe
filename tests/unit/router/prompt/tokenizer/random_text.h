// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "common/base/rng.h"

namespace sightline::tokenizer {

// Returns a text of up to pieces_max pieces that probably meet a rule. The pieces are letters of
// several scripts, combining marks, digits, runs of blanks and newlines, contractions, punctuation,
// emoji, added tokens and parts of them. Every character is in Unicode 9.0.
std::string random_text(Rng& rng, std::uint32_t pieces_max);

}  // namespace sightline::tokenizer
