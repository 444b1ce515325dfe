// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/result.h"

#include "router/front/selection/selection.h"
#include "router/front/selection_json/limits.h"

// What a frontend tells of its reservations beside asking for them, as JSON. Pure.
namespace sightline::selection_json {

// A reservation that goes on.
struct Held {
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;
  // False: its answer has not come yet. It does not end by this list, nor is it booked by it.
  bool is_booked = true;
  selection::Adoption work;  // of a booked one: all that is needed to book it anew
};

// The whole list of what an instance holds at a router with the numbers `from` to `up_to`.
struct Renewal {
  std::string instance;
  std::uint64_t from = 0;
  std::uint64_t up_to = 0;
  std::vector<Held> open;  // each number once, ascending
};
std::string write_renewal(const Renewal& renewal);
Result<Renewal> read_renewal(std::string body, HeldBytes* memory = nullptr);

// What happened to a reservation.
struct Note {
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;
  std::optional<selection::Ending> ending;  // nothing: its first token has come
};

struct Notes {
  std::string instance;
  std::vector<Note> notes;         // in the order in which it happened
  std::vector<std::string> alive;  // workers of whose answers pieces came lately
};
std::string write_notes(const Notes& notes);
Result<Notes> read_notes(std::string body, HeldBytes* memory = nullptr);

}  // namespace sightline::selection_json
