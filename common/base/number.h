// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace sightline {

// The number that the text spells, for input from outside. The text must consist of decimal digits
// only: no sign, no blanks. Returns nothing for any other text, and for a number above max or
// beyond the type.
template <std::unsigned_integral Unsigned = std::uint32_t>
std::optional<Unsigned> whole_number(
    std::string_view text,
    std::type_identity_t<Unsigned> max = std::numeric_limits<Unsigned>::max()) {
  Unsigned value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end || value > max) return std::nullopt;
  return value;
}

}  // namespace sightline
