// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <stop_token>
#include <utility>

#include "common/base/result.h"
#include "common/runtime/io_pool.h"

namespace sightline::proxy {

// Bodies above this size are parsed and prepared on the compute threads, so that one client's
// request does not hold up the streams that share its I/O thread: 64 KiB of text are tokenized in
// less than a millisecond, and the way to another thread and back costs about 10 µs.
inline constexpr std::size_t kInlineBytesMax = 64U << 10U;

// Runs work(), which gives a Result, here if bytes are few, else on the compute pool. Work whose
// client has left before it began is not done: Cancelled.
template <class Work>
Task<std::invoke_result_t<Work&>> offload(IoPool& pool, std::size_t bytes, std::stop_token left,
                                          Work work) {
  if (bytes <= kInlineBytesMax) co_return work();
  auto wanted = [&]() -> std::invoke_result_t<Work&> {
    if (left.stop_requested()) return client_error(ErrorCode::Cancelled, "the client left");
    return work();
  };
  auto result = co_await run_on_compute(pool, std::move(wanted));
  co_return result;
}

}  // namespace sightline::proxy
