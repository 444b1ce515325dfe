// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/json.h"
#include "common/base/result.h"

// Reading what a server answers to the router's own questions. Pure.
namespace sightline::family {

// The answer is not what it must be. Blamed on the worker.
Error corrupt(std::string message);

// The object that the answer of this path is. Errors: Corrupt.
Result<json::Document> parse_object(std::string body, const std::string& path);

// A string member within kNameBytesMax; empty when it is absent, null or of another kind.
std::string text_of(const json::Value& object, std::string_view name);

}  // namespace sightline::family
