// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/json.h"
#include "common/base/result.h"

// Reads the answers of servers to the router's own requests. Pure.
namespace sightline::family {

// Returns an error that blames the worker: the answer has a wrong form.
Error corrupt(std::string message);

// Parses an answer that must be an object. `path` names the endpoint in errors. Error: Corrupt.
Result<json::Document> parse_object(std::string body, const std::string& path);

// Returns a string member of at most kNameBytesMax bytes. Empty if it is absent, null, longer or of
// another kind.
std::string text_of(const json::Value& object, std::string_view name);

}  // namespace sightline::family
