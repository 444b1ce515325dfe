// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What Python's str does, on UTF-8. Positions and lengths are in code points where Python counts
// them; inputs are valid UTF-8 (bytes that are not count as one code point each).
namespace sightline::python {

// Number of code points.
std::size_t length_of(std::string_view text);
// Byte offset of a code point's index; text.size() beyond the end.
std::size_t offset_of(std::string_view text, std::size_t index);
// The code point at a byte offset; moves the offset behind it.
char32_t next_code_point(std::string_view text, std::size_t& offset);
void append_code_point(std::string& out, char32_t c);

// str.isspace() of one code point.
bool is_space(char32_t c);
// str.isprintable() of one code point: repr() writes the others as escapes.
bool is_printable(char32_t c);

enum class Side : std::uint8_t { Left, Right, Both };
// strip, lstrip, rstrip. Without characters: white space.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> characters = std::nullopt);

// split and rsplit; nullopt splits at runs of white space. splits_max < 0: no bound.
// A given separator is not empty.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator,
                                    std::int64_t splits_max);
std::vector<std::string_view> split_right(std::string_view text,
                                          std::optional<std::string_view> separator,
                                          std::int64_t splits_max);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// replace; replacements_max < 0: no bound. An empty `from` matches between all code points.
std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t replacements_max);
// str.count without overlaps.
std::size_t count_of(std::string_view text, std::string_view part);

// Case mappings by the Unicode data of the ICU in use.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// First character in title case, the rest in lower case.
std::string capitalize(std::string_view text);
// Every run of cased letters starts in title case (str.title).
std::string title(std::string_view text);

enum class CharacterClass : std::uint8_t {
  Alphabetic,
  Digit,
  Decimal,
  Numeric,
  Alphanumeric,
  Space
};
// str.isalpha() and its kin: true if not empty and all characters belong.
bool consists_of(std::string_view text, CharacterClass wanted);
// str.isupper(), str.islower().
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);

}  // namespace sightline::python
