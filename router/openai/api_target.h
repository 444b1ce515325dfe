// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::openai {

// The path and query of a request's target, in one spelling. The router compares paths in this
// spelling and sends it to engines. An engine that decodes the path gets the same one.
struct ApiTarget {
  std::string path;   // "/v1/models": no escaped letter, no empty segment, no dot segment
  std::string query;  // with its question mark. Empty if the target has no query
};

// Reads the origin form and the absolute form, whose authority it drops. Decodes escapes of
// characters that need no escape. Errors, blamed on the client: InvalidArgument if two servers
// could read different paths (escaped slashes, dot segments, …). NotFound for a slash at the end,
// which engines answer with a redirection to themselves.
Result<ApiTarget> read_target(std::string_view target);

// Returns the name that GET /v1/models/NAME asks for, with escapes decoded. The name may have
// slashes, escaped or not, and any bytes. Empty for another target.
std::optional<std::string> model_of(std::string_view target);

// Returns true for a path at which an engine may read prompts as at the generating paths. These are
// the generating paths and all paths that begin like them ("/v1/chat/completions/batch"). The case
// of letters does not matter.
bool is_like_generating(std::string_view path);

}  // namespace sightline::openai
