// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sightline::json {

// Appends the text of a JSON string, given without its quotes, with its escapes resolved (RFC 8259
// section 7). Returns the place of the first malformed escape. A lone surrogate is malformed
// because UTF-8 cannot express it.
std::optional<std::size_t> append_unescaped(std::string& out, std::string_view raw);

}  // namespace sightline::json
