// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.h"

namespace sightline::proxy {

// Allows pages of other origins to use the API in a browser (WHATWG Fetch, "CORS protocol").
// Credentials of browsers are never allowed. The page itself adds an Authorization header.

// Adds the headers by which a page of this origin may read an answer. `allowed` is
// server.cors_origins, and `origin` is the header of the request. Without an allowed origin it adds
// at most Vary.
void allow_origin(http::Headers& answer, const std::vector<std::string>& allowed,
                  std::optional<std::string_view> origin);

// Returns whether a request is a browser's question before it sends a page's request.
bool is_preflight(const http::Request& request);

// Returns the answer to a preflight request. As in vLLM 0.32, it allows any method and the
// requested headers for ten minutes. For a forbidden origin it allows nothing.
http::Response preflight_answer(const http::Request& request,
                                const std::vector<std::string>& allowed);

}  // namespace sightline::proxy
