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

// The messages of a frontend about its reservations, besides questions, as JSON. Pure functions.
namespace sightline::selection_json {

// A reservation that goes on.
struct OpenReservation {
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;
  // False for an open question. The list neither ends it nor reserves it.
  bool is_booked = true;
  // If booked: all facts that another router needs to reserve the load.
  selection::Adoption work;
};

// All reservations of an instance at a router, with the numbers `from` to `up_to`.
struct Renewal {
  std::string instance;
  std::uint64_t from = 0;
  std::uint64_t up_to = 0;
  // In ascending order, each number once.
  std::vector<OpenReservation> open;
};
// The body is counted in `memory`, if it is not null. read_renewal() refuses numbers outside of
// `from` to
// `up_to`, and numbers that do not ascend.
std::string write_renewal(const Renewal& renewal);
Result<Renewal> read_renewal(std::string body, HeldBytes* memory = nullptr);

// An event of a reservation.
struct Note {
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;
  // Absent for the first token.
  std::optional<selection::Ending> ending;
};

// The events of several reservations of an instance.
struct Notes {
  std::string instance;
  // In the order in which they happened.
  std::vector<Note> notes;
  // Workers from which parts of answers arrived recently.
  std::vector<std::string> alive;
};
// The body is counted in `memory`, if it is not null.
std::string write_notes(const Notes& notes);
Result<Notes> read_notes(std::string body, HeldBytes* memory = nullptr);

}  // namespace sightline::selection_json
