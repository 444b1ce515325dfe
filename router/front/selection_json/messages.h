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

// The messages of frontends and other clients to the selection API and their answers, as JSON.
// Messages come from peers. Therefore every text, list and number has a limit. A value beyond it is
// InvalidArgument, which names the member. Pure functions.
namespace sightline::selection_json {

// A prompt of a client that does not compute keys.
struct TokenPrompt {
  std::vector<TokenId> tokens;
  // In the order of the prompt.
  std::vector<keys::MediaSpan> media;
  std::optional<std::string> cache_salt;
};

// The body of /select, /select_and_reserve and /overlap_scores.
struct SelectionAsk {
  // With `tokens`, the router computes the keys and the job, except job.prompt_tokens.
  selection::Inquiry inquiry;
  std::optional<TokenPrompt> tokens;
  // Names the settings that the keys depend on. Empty without keys.
  std::string identity;
  // The name of the reservation. It is absent for a question without one.
  std::optional<leases::Name> reservation;
  // An end of its own.
  std::optional<std::chrono::seconds> lease;
};
// write_ask() writes the keys of the inquiry and never `tokens`. The body of read_ask() is counted
// in
// `memory`, if it is not null.
std::string write_ask(const SelectionAsk& ask);
Result<SelectionAsk> read_ask(std::string body, HeldBytes* memory = nullptr);

// Returns a selection, with the name of its reservation if it has one.
std::string write_selection(const selection::Selection& selection,
                            const std::optional<leases::Name>& reservation);
// Reads a selection. Its reservation number is 0, because the caller has its own numbers. With
// `reserved`, it must have this name.
Result<selection::Selection> read_selection(std::string body,
                                            const std::optional<leases::Name>& reserved = {});

// An ineligible entry is written without its candidate and score.
std::string write_explanation(const selection::Explanation& explanation);
Result<selection::Explanation> read_explanation(std::string body);

}  // namespace sightline::selection_json
