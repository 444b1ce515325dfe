// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace sightline::retry {

// Limits for the parts of a worker's refusal that a client gets.
// Longest Retry-After, in seconds.
inline constexpr std::uint32_t kRetryAfterSecondsMax = 3600;
// Largest body to forward unchanged.
inline constexpr std::size_t kRefusalBodyBytesMax = 4096;
// Largest text within a message of the router's own.
inline constexpr std::size_t kRefusalTextBytesMax = 512;

// A 503 as the engine sent it.
struct RefusalText {
  // The value of the header, or empty.
  std::string retry_after;
  // Empty if there is no body or if it is too large.
  std::string body;
  // The host of the worker's URL.
  std::string engine_host;
};

// The parts that a client may get: without control characters, invalid UTF-8 and network addresses.
struct WorkerRefusal {
  // At least 1.
  std::optional<std::uint32_t> retry_after_s;
  // The worker's body, if it is an error in OpenAI's shape and contains no forbidden part.
  // Otherwise empty.
  std::string body;
  // One line: the message of its error, or its body as text.
  std::string text;
};

// Reads a refusal. Pure. Hostile input is harmless. `now` is needed for a Retry-After with a date.
WorkerRefusal read_refusal(const RefusalText& said, WallTime now);

// Returns the text in one line of at most bytes_max bytes. Each address becomes "[address]". An
// address is numeric, or in a URL, or this host.
std::string shown_text(std::string_view text, std::string_view host, std::size_t bytes_max);

}  // namespace sightline::retry
