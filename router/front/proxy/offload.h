// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <stop_token>
#include <string_view>
#include <utility>

#include "common/base/result.h"
#include "common/base/rng.h"
#include "common/runtime/io_pool.h"

#include "router/openai/request.h"
#include "router/prompt/prepare/resolve_media.h"

namespace sightline::proxy {

// Steps that cost more than the tokenizing of this many bytes of text, about a millisecond, run on
// the compute threads, so that one client's request does not hold up the streams that share its
// I/O thread. Others stay: the way to another thread and back costs about 10 µs, and there an
// image's bytes are not in the core's caches (923 KB: 6 to 18 % more CPU for the whole request).
inline constexpr std::size_t kInlineWeightMax = 64U << 10U;

// Weights: what a step costs, in bytes of text to tokenize. Only the choice of the thread depends
// on them, so guesses do. Pure functions.

// To parse a body. An inline image is one long string, which costs 0.13 ns a byte to parse; token
// ids, escapes and small objects cost 3 to 27. What share of the body is of which kind is guessed
// from 64 looks into it; `places` draws where, so that a client cannot know what will be seen.
std::size_t parse_weight(std::string_view body, Rng places);

// To prepare a prompt: its text, and the images, whose bytes are decoded and hashed at a fraction
// of a nanosecond each, but whose headers may hold compressed text (image/png.cc).
std::size_t prepare_weight(const openai::Request& request, const prepare::Downloads& downloads);

// Runs work(), which gives a Result, here if its weight is small, else on the compute pool. Work
// whose client has left before it began is not done: Cancelled.
template <class Work>
Task<std::invoke_result_t<Work&>> offload(IoPool& pool, std::size_t weight, std::stop_token left,
                                          Work work) {
  if (weight <= kInlineWeightMax) co_return work();
  auto wanted = [&]() -> std::invoke_result_t<Work&> {
    if (left.stop_requested()) return client_error(ErrorCode::Cancelled, "the client left");
    return work();
  };
  auto result = co_await run_on_compute(pool, std::move(wanted));
  co_return result;
}

}  // namespace sightline::proxy
