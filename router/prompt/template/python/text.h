// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The methods of Python's str for UTF-8. Where Python counts characters, positions and lengths are
// in code points. Inputs must be valid UTF-8. For other bytes the results are not defined, but
// nothing outside of the text is read. Pure functions.
namespace sightline::python {

// Returns the number of code points.
std::size_t length_of(std::string_view text);
// Returns the byte offset of the code point with this index, or text.size() beyond the end.
std::size_t offset_of(std::string_view text, std::size_t index);
// Returns the code point at a byte offset, and moves the offset behind it.
char32_t next_code_point(std::string_view text, std::size_t& offset);
// Appends the UTF-8 of a code point.
void append_code_point(std::string& out, char32_t c);

// `str.isspace()` for one code point.
bool is_space(char32_t c);
// `str.isprintable()` for one code point. repr() writes the other ones as escapes.
bool is_printable(char32_t c);

enum class Side : std::uint8_t { Left, Right, Both };
// `strip`, `lstrip` and `rstrip`. Without `characters` they remove white space. The result is a
// view of the text.
std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> characters = std::nullopt);

// `split` and `rsplit`. Without a separator they split at runs of white space. A negative
// splits_max means no limit. A separator must not be empty. The parts are views of the text.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator,
                                    std::int64_t splits_max);
std::vector<std::string_view> split_right(std::string_view text,
                                          std::optional<std::string_view> separator,
                                          std::int64_t splits_max);
// `splitlines`, at the line ends that Python knows.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// `replace`. A negative replacements_max means no limit. An empty `from` matches before, between
// and after all code points.
std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t replacements_max);
// `count`, without overlaps.
std::size_t count_of(std::string_view text, std::string_view part);

// `upper` and `lower`. The mappings of case are those of the ICU library in use.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// `capitalize`: the first character in title case, the others in lower case.
std::string capitalize(std::string_view text);
// `title`: every run of cased letters begins in title case.
std::string title(std::string_view text);

enum class CharacterClass : std::uint8_t {
  Alphabetic,
  Digit,
  Decimal,
  Numeric,
  Alphanumeric,
  Space
};
// `isalpha`, `isdigit`, `isdecimal`, `isnumeric`, `isalnum` and `isspace`. True if the text is not
// empty and all its characters have the class.
bool consists_of(std::string_view text, CharacterClass wanted);
// `isupper` and `islower`.
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);

}  // namespace sightline::python
