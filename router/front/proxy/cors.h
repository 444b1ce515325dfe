// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.h"

namespace sightline::proxy {

// Lets pages of other origins in browsers use the API (WHATWG Fetch, "CORS protocol"). Credentials
// of browsers are never allowed; an Authorization header is the page's own.

// Adds to an answer that a page of this origin, which is one of those allowed, may read it.
// `allowed` is server.cors_origins, `origin` the request's header.
void allow_origin(http::Headers& answer, const std::vector<std::string>& allowed,
                  std::optional<std::string_view> origin);

// True for a browser's question whether a page may send a request.
bool is_preflight(const http::Request& request);

// The answer to it: any method, the headers that it names, for ten minutes, as vLLM 0.32 answers;
// nothing of that where the origin is not allowed.
http::Response preflight_answer(const http::Request& request,
                                const std::vector<std::string>& allowed);

}  // namespace sightline::proxy
