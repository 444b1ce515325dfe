// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sightline::openai {

// What stands for any method.
inline constexpr std::string_view kAnyMethod = "*";

// The methods, like "GET, HEAD", with which a request for this path is passed to an engine although
// the router does not answer it by its prompt; empty: with none. These are the inference endpoints
// of OpenAI's API, of vLLM 0.32 and of SGLang 0.5.23, and the patterns in `added`, each with
// kAnyMethod. A "*" in a pattern stands for one segment. The path is one of read_target().
std::string_view passed_methods(std::string_view path, std::span<const std::string> added);

// True if the list, as above, has the method.
bool has_method(std::string_view methods, std::string_view method);

}  // namespace sightline::openai
