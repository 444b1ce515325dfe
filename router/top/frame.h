// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "router/top/facts.h"

namespace sightline::top {

struct Screen {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

inline constexpr std::size_t kColumnsMin = 40;
inline constexpr std::size_t kRowsMin = 10;

// A number in at most five characters: "812", "12.4k", "3.1M".
std::string short_count(std::uint64_t count);
// A time in at most five characters: "250ms", "12.4s", "5m", "3h"; nothing: "-".
std::string short_time(const std::optional<std::uint64_t>& ms);

// One view of all routers: at most screen.rows lines of at most screen.columns characters, without
// their ends. What does not fit is summed up in a line. Workers that are not ready come first, then
// those with the most load; of a worker, what the routers say is put together: the worst state, the
// sum of their load, the greatest lag. `title`: what stands at the right end of the first line,
// `footer`: the last line, empty: none. Pure.
std::vector<std::string> render(const std::vector<RouterFacts>& routers, const Screen& screen,
                                const std::string& title, const std::string& footer);

}  // namespace sightline::top
