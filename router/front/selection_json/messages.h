// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/cache/keys/block_key.h"
#include "router/front/leases/lease_book.h"
#include "router/front/selection/selection.h"

// What frontends and others send to the selection API and are answered, as JSON. What is read comes
// from a peer: every text, list and number has a bound, and what is beyond is InvalidArgument,
// which names the member. Pure.
namespace sightline::selection_json {

inline constexpr std::size_t kTokensMax = 1 << 22;       // of a prompt, and blocks of it
inline constexpr std::size_t kMediaMax = 10'000;         // items of a prompt
inline constexpr std::size_t kNameBytesMax = 1024;       // a worker's, adapter's, media item's
inline constexpr std::size_t kTriedMax = 4096;           // workers
inline constexpr std::size_t kMessageBytesMax = 8192;    // of an error
inline constexpr std::size_t kExplainedMax = 65'536;     // workers and ranks of an explanation
inline constexpr std::uint64_t kLeaseSecondsMax = 3600;  // of lease_s

// A prompt of somebody who has not our keys.
struct TokenPrompt {
  std::vector<TokenId> tokens;
  std::vector<keys::MediaSpan> media;  // in the order of the prompt
  std::optional<std::string> cache_salt;
};

// Body of /select, /select_and_reserve and /overlap_scores.
struct Ask {
  // Given with `tokens`, the keys and all of the job but its prompt_tokens are left open.
  selection::Inquiry inquiry;
  std::optional<TokenPrompt> tokens;
  std::string identity;  // of whoever made the keys: says what they depend on; empty: no keys
  std::optional<leases::Name> reservation;
  std::optional<std::chrono::seconds> lease;  // an end of its own
};
std::string write_ask(const Ask& ask);
Result<Ask> read_ask(std::string body);

// A selection with the name it is reserved under, if it is.
std::string write_selection(const selection::Selection& selection,
                            const std::optional<leases::Name>& reservation);
// Its reservation is 0: that is the caller's own business.
Result<selection::Selection> read_selection(std::string body);

std::string write_ending(const selection::Ending& ending);
Result<selection::Ending> read_ending(std::string body);

std::string write_explanation(const selection::Explanation& explanation);
Result<selection::Explanation> read_explanation(std::string body);

// {"error":{"message","type","param","code"},"cause":{…}}: OpenAI's shape, and beside it all that
// makes the same Error again.
std::string write_error(const Error& error);
// Nothing: the body is not from this API's own hand.
std::optional<Error> read_error(std::string body);

}  // namespace sightline::selection_json
