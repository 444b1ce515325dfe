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

// How attempts ended and why something failed, as JSON.
namespace sightline::selection_json {

std::string write_ending(const selection::Ending& ending);
Result<selection::Ending> read_ending(std::string body, HeldBytes* memory = nullptr);
// The same within another message.
Result<selection::Ending> ending_in(json::Value object);

// {"error":{"message","type","param","code"},"cause":{…}}: OpenAI's shape, and beside it all that
// makes the same Error again.
std::string write_error(const Error& error);
// What an error in OpenAI's shape says; empty: the body is none.
std::string error_message(std::string body);
// Nothing: the body is not from this API's own hand.
std::optional<Error> read_error(std::string body);

}  // namespace sightline::selection_json
