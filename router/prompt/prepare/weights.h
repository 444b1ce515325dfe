// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/rng.h"

#include "router/openai/request.h"
#include "router/prompt/prepare/resolve_media.h"

namespace sightline::prepare {

// Weights: what a step costs, in units of 16 ns, a byte of ordinary text to tokenize. Only the
// choice of the thread depends on them, so guesses do. Pure functions.

// To parse a body. An inline image is one long string, which costs 0.1 to 0.5 ns a byte to parse;
// token ids, escapes and small objects cost 3 to 30, two units. What share of the body is of which
// kind is guessed from 96 looks into it; `places` draws where, so that a client cannot know what
// will be seen.
std::size_t parse_weight(std::string_view body, Rng places);

// To prepare a prompt: its text, at twenty units a byte, since hostile text costs that, and the
// images, whose bytes are decoded and hashed at a fraction of a nanosecond each, but whose headers
// may hold compressed text (image/png.cc).
std::size_t prepare_weight(const openai::ApiRequest& request, const Downloads& downloads);

// Bytes of memory that preparing takes at most, about, besides what the token cache and downloads
// take: the rendered text, its tokens, and the values that templates work with.
std::size_t prepare_bytes(const openai::ApiRequest& request, std::size_t tokens_max);

}  // namespace sightline::prepare
