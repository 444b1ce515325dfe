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

#include "common/base/byte_budget.h"
#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/cache/keys/block_key.h"
#include "router/front/leases/lease_book.h"
#include "router/front/selection/selection.h"
#include "router/front/selection_json/endings.h"
#include "router/front/selection_json/limits.h"

// What frontends and others send to the selection API and are answered, as JSON. What is read comes
// from a peer: every text, list and number has a bound, and what is beyond is InvalidArgument,
// which names the member. Pure.
namespace sightline::selection_json {

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
Result<Ask> read_ask(std::string body, HeldBytes* memory = nullptr);

// A selection with the name it is reserved under, if it is.
std::string write_selection(const selection::Selection& selection,
                            const std::optional<leases::Name>& reservation);
// Its reservation is 0: that is the caller's own business. Given a name, it must be reserved under
// this one.
Result<selection::Selection> read_selection(std::string body,
                                            const std::optional<leases::Name>& reserved = {});

std::string write_explanation(const selection::Explanation& explanation);
Result<selection::Explanation> read_explanation(std::string body);

}  // namespace sightline::selection_json
