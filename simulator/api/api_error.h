// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace sightline::api {

// The errors of a vLLM 0.32 server, with its messages. An Error with Blame::Client has one of these
// forms:
// - NotFound: 404 NotFoundError.
// - Corrupt: 400 of the schema check ("Bad Request").
// - Any other code: 400 BadRequestError.
//
// An Error with another blame is a 500 InternalServerError.

// Returns an error of a check of one field. The message ends with " (parameter=…)", and `param` is
// set.
Error parameter_error(std::string_view message, std::string_view param);
// The same with the rejected value: " (parameter=…, value=…)".
Error value_error(std::string_view message, std::string_view param, std::string_view value);

// One finding of the schema check, as Pydantic 2 reports it.
struct SchemaFinding {
  // For example "missing".
  std::string_view type;
  // For example "body.messages".
  std::string_view where;
  std::string_view message;
  // The value as Python shows it.
  std::string input;
  // The error text of Pydantic's `ctx`. Empty: the finding has no `ctx`.
  std::string_view context = {};
};
// Returns the error of the schema check with this single finding.
Error schema_error(const SchemaFinding& finding);

// Returns the HTTP status of an error: 400, 404 or 500.
int status_of(const Error& error);
// Returns the JSON body {"error":{"message","type","param","code"}}. `param` is null if it is
// empty,
// and `code` is the status.
std::string body_of(const Error& error);

}  // namespace sightline::api
