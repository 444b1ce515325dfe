// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sightline::json {

// Appends the text of a JSON string, given without its quotes, with escapes resolved (RFC 8259
// section 7). Gives the position of the first malformed escape; lone surrogates are malformed,
// since no UTF-8 stands for them.
std::optional<std::size_t> append_unescaped(std::string& out, std::string_view raw);

}  // namespace sightline::json
