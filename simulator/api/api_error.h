// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace sightline::api {

// Errors of a vLLM 0.32 server in its own words. Error stands for them as follows: blame Client
// with NotFound is a 404 NotFoundError, with Corrupt a 400 of the schema check ("Bad Request"),
// with any other code a 400 BadRequestError; every other blame is a 500 InternalServerError.

// The message with " (parameter=…)" at its end, and param set: checks of single fields.
Error parameter_error(std::string_view message, std::string_view param);
// The same with the refused value: " (parameter=…, value=…)".
Error value_error(std::string_view message, std::string_view param, std::string_view value);

// One finding of the schema check, as Pydantic 2 puts it.
struct SchemaFinding {
  std::string_view type;   // "missing"
  std::string_view where;  // "body.messages"
  std::string_view message;
  std::string input;  // how Python shows the value
  std::string_view context = {};
};
Error schema_error(const SchemaFinding& finding);

// HTTP status, and {"error":{"message","type","param","code"}}.
int status_of(const Error& error);
std::string body_of(const Error& error);

}  // namespace sightline::api
