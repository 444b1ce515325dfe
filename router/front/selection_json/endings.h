// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>

#include "common/base/byte_budget.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/result.h"

#include "router/front/selection/selection.h"

// Endings of attempts and causes of failures, as JSON.
namespace sightline::selection_json {

// Returns an ending as JSON.
std::string write_ending(const selection::Ending& ending);
// Reads an ending. The body is counted in `memory`. Error: InvalidArgument.
Result<selection::Ending> read_ending(std::string body, HeldBytes* memory = nullptr);
// The same for an ending inside of another message.
Result<selection::Ending> ending_in(json::Value object);

// Returns {"error":{"message","type","param","code"},"cause":{…}}. "error" has OpenAI's shape.
// "cause" has all that read_error() needs.
std::string write_error(const Error& error);
// Returns the message of an error in OpenAI's shape, or an empty text for another body.
std::string error_message(std::string body);
// Reads an error of write_error(). Returns nothing if this API did not write the body.
std::optional<Error> read_error(std::string body);

}  // namespace sightline::selection_json
