// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::openai {

// What a request's target names, in the one spelling in which paths are compared and engines get
// them. An engine that decodes the path must come to the same one.
struct ApiTarget {
  std::string path;   // "/v1/models": no escaped letter, no empty and no dot segment
  std::string query;  // with its question mark; empty if there is none
};

// Reads the origin form and the absolute form, whose authority is dropped; escapes of characters
// that need none are undone. Errors, blamed on the client: InvalidArgument for what two servers
// could read as different paths (escaped slashes, dot segments, …), NotFound for a slash at the
// end, which engines answer with a redirection to themselves.
Result<ApiTarget> read_target(std::string_view target);

// The name that GET /v1/models/NAME asks for, escapes undone; it may have slashes, escaped or not.
// Any bytes. Nothing: the target is another one.
std::optional<std::string> model_of(std::string_view target);

// True for a path at which an engine may read prompts as it does at the generating paths: these,
// and all that begins like them ("/v1/chat/completions/batch"), in any case of letters.
bool is_like_generating(std::string_view path);

}  // namespace sightline::openai
