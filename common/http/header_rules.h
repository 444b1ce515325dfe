// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>

namespace sightline::http {

// Rules for fields that the parser accepts although other readers may understand them differently.
// Pure.

// True if the value of a Host field is host [":" port] (RFC 3986 section 3.2.2). An empty value is
// valid: the request has no authority. Does not decode percent-encoding.
bool is_host_value(std::string_view value);

// True if a line of the header begins with a blank and so continues the line before it (obs-fold,
// RFC 9112 section 5.2).
bool has_folded_line(std::string_view header);

}  // namespace sightline::http
