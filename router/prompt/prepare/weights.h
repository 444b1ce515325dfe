// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/rng.h"

#include "router/openai/request.h"
#include "router/prompt/prepare/resolve_media.h"

namespace sightline::prepare {

// A weight is the cost of a step in units of 16 ns, the time to tokenize a byte of ordinary text.
// Only the choice of the thread depends on weights, and therefore guesses are good enough. Pure
// functions.

// The weight of parsing a body. An inline image is one long string and costs 0.1 to 0.5 ns per
// byte. Token ids, escapes and small objects cost 3 to 30 ns per byte, which counts as two units.
// The function looks at 96 places of the body and guesses the share of each kind. `places` draws
// the places, and so no client can know which ones are seen.
std::size_t parse_weight(std::string_view body, Rng places);

// The weight of preparing a prompt. Its text counts twenty units per byte, because hostile text
// costs this much. Decoding and hashing the bytes of images takes a fraction of a nanosecond per
// byte. But image headers may hold compressed text (image/png.cc), and so each image has a weight
// of its own.
std::size_t prepare_weight(const openai::ApiRequest& request, const Downloads& downloads);

// The most memory that preparation takes, roughly, in bytes. It covers the rendered text, its
// tokens and the values of templates. It does not cover the token cache and downloads.
std::size_t prepare_bytes(const openai::ApiRequest& request, std::size_t tokens_max);

}  // namespace sightline::prepare
