// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

namespace sightline {

// True if a terminal, a log and their readers may get this text from outside. Not printable are:
// - control characters, also those beyond ASCII: U+009B begins a control sequence of terminals
// - the format characters of Unicode 15: U+202E reverses the direction of the text after it
// - line and paragraph separators, and U+FFFE and U+FFFF
// - bytes that are not UTF-8
bool is_printable(std::string_view text);

// Appends the text. Each unprintable character becomes an escape: \n, \t, \x1b or \u202e.
void append_printable(std::string& out, std::string_view text);

}  // namespace sightline
