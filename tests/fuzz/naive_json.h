// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sightline::fuzz {

// What the obvious reading of RFC 8259 says about a valid JSON text.
struct JsonFacts {
  std::size_t depth = 0;   // containers within one another
  bool container = false;  // the root is an object or an array
  // A number whose digits or exponent are so many that a double may not hold it.
  bool long_number = false;
  // An escape \ud800 to \udfff without its other half: allowed by the grammar, not text.
  bool lone_surrogate = false;
};

// Nothing if the text is not JSON. Recursive: for texts of bounded depth only, which the limit
// ensures by giving nothing beyond.
std::optional<JsonFacts> read_naive_json(std::string_view text, std::size_t depth_max);

}  // namespace sightline::fuzz
