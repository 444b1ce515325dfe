// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sightline::fuzz {

// What the obvious reading of RFC 8259 finds in a valid JSON text.
struct JsonFacts {
  std::size_t depth = 0;   // containers within each other.
  bool container = false;  // the root is an object or an array.
  // A number with so many digits, or with so long an exponent, that a double may not hold it.
  bool long_number = false;
  // An escape \ud800 to \udfff without its other half. The grammar allows it, but it is not text.
  bool lone_surrogate = false;
};

// Reads a JSON text. Empty if the text is not JSON, or nests deeper than depth_max. The reader is
// recursive, so the limit bounds its stack.
std::optional<JsonFacts> read_naive_json(std::string_view text, std::size_t depth_max);

}  // namespace sightline::fuzz
