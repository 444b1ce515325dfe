// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

namespace sightline {

// Text from outside, as a terminal, a log and their readers may get it. Not printable are control
// characters (those beyond ASCII too: U+009B begins a terminal's control sequence), the format
// characters of Unicode 15 (U+202E turns the direction of what follows), line and paragraph
// separators, and bytes that are no UTF-8.

bool is_printable(std::string_view text);

// Appends the text; what is not printable becomes \n, \t, \x1b or \u202e.
void append_printable(std::string& out, std::string_view text);

}  // namespace sightline
