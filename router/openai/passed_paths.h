// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sightline::openai {

// Means any method.
inline constexpr std::string_view kAnyMethod = "*";

// Returns the methods, like "GET, HEAD", of requests for this path that the router passes to an
// engine without parsing their prompts. Empty if it passes no request. The paths are the inference
// endpoints of OpenAI's API, of vLLM 0.32 and of SGLang 0.5.23, and the patterns in `added`, each
// with kAnyMethod. A "*" in a pattern matches one segment. `path` comes from read_target().
std::string_view passed_methods(std::string_view path, std::span<const std::string> added);

// Returns true if the list of passed_methods() has the method.
bool has_method(std::string_view methods, std::string_view method);

}  // namespace sightline::openai
