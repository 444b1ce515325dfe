// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>

namespace sightline::http {

// What the parser lets pass although other readers may understand it differently. Pure.

// True if the value of a Host field is host [":" port] (RFC 3986 section 3.2.2), or empty as in a
// request without authority. What follows a percent sign is not looked at.
bool is_host_value(std::string_view value);

// True if a line of the header begins with a blank, and so goes on with the line before (obs-fold,
// RFC 9112 section 5.2).
bool has_folded_line(std::string_view header);

}  // namespace sightline::http
