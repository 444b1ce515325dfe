// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "router/top/top_facts.h"

namespace sightline::top {

// The size of the terminal, in characters.
struct Screen {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// A smaller screen counts as one of this size.
inline constexpr std::size_t kColumnsMin = 40;
inline constexpr std::size_t kRowsMin = 10;

// Returns a number in at most five characters: "812", "12.4k", "3.1M".
std::string short_count(std::uint64_t count);
// Returns a time in at most five characters: "250ms", "12.4s", "5m", "3h". "-" for an empty one.
std::string short_time(const std::optional<std::uint64_t>& ms);

// Returns one view of all routers: at most screen.rows lines of at most screen.columns characters,
// without line ends. A last line sums up what does not fit.
//
// Workers that are not ready come first, then workers with the most load. A worker has one line for
// all routers: the worst state, the sum of their load, the greatest lag.
//
// `title` is at the right end of the first line. `footer` is the last line, if it is not empty.
// Pure.
std::vector<std::string> render(const std::vector<RouterFacts>& routers, const Screen& screen,
                                const std::string& title, const std::string& footer);

}  // namespace sightline::top
