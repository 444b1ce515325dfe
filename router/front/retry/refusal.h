// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace sightline::retry {

// Bounds on what a client hears of a worker's refusal.
inline constexpr std::uint32_t kRetryAfterSecondsMax = 3600;
inline constexpr std::size_t kRefusalBodyBytesMax = 4096;  // passed on as it is
inline constexpr std::size_t kRefusalTextBytesMax = 512;   // as part of a message of our own

// A 503 as the engine sent it.
struct RefusalText {
  std::string retry_after;  // the header's value, empty: none
  std::string body;         // empty: none, or more than anybody would read
  std::string engine_host;  // of the worker's URL
};

// What of it a client may hear: no control characters, broken UTF-8 or network addresses.
struct WorkerRefusal {
  std::optional<std::uint32_t> retry_after_s;  // 1 or more
  std::string body;  // the worker's, if that is an error in OpenAI's shape without any such; or ""
  std::string text;  // one line: the message of its error, or its body as text
};

// Pure function; hostile input is fine. `now`: for a Retry-After that is a date.
WorkerRefusal read_refusal(const RefusalText& said, WallTime now);

// The text in one line, of at most so many bytes, with each address (numeric, in a URL, or that
// host) as "[address]".
std::string shown_text(std::string_view text, std::string_view host, std::size_t bytes_max);

}  // namespace sightline::retry
