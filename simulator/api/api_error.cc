// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/api/api_error.h"

#include "common/base/json.h"

namespace sightline::api {
namespace {

std::string text(std::string_view part) { return std::string(part); }

std::string_view type_of(const Error& error) {
  if (error.blame != Blame::Client) return "InternalServerError";
  if (error.code == ErrorCode::NotFound) return "NotFoundError";
  // vLLM's schema check writes this type as two words. Its other checks write one word.
  return error.code == ErrorCode::Corrupt ? "Bad Request" : "BadRequestError";
}

}  // namespace

Error parameter_error(std::string_view message, std::string_view param) {
  return client_error(ErrorCode::InvalidArgument,
                      text(message) + " (parameter=" + text(param) + ")", text(param));
}

Error value_error(std::string_view message, std::string_view param, std::string_view value) {
  return client_error(ErrorCode::InvalidArgument,
                      text(message) + " (parameter=" + text(param) + ", value=" + text(value) + ")",
                      text(param));
}

Error schema_error(const SchemaFinding& finding) {
  std::string message = "1 validation error:\n  {'type': '" + text(finding.type) + "', 'loc': '" +
                        text(finding.where) + "', 'msg': '" + text(finding.message) +
                        "', 'input': '" + finding.input + "'";
  if (!finding.context.empty()) message += ", 'ctx': {'error': '" + text(finding.context) + "'}";
  return client_error(ErrorCode::Corrupt, message + "}", text(finding.where));
}

int status_of(const Error& error) {
  if (error.blame != Blame::Client) return 500;
  return error.code == ErrorCode::NotFound ? 404 : 400;
}

std::string body_of(const Error& error) {
  std::string body = "{\"error\":{\"message\":";
  json::append_quoted(body, error.message);
  body += ",\"type\":\"" + text(type_of(error)) + "\",\"param\":";
  body += error.param.empty() ? "null" : json::to_quoted(error.param);
  return body + ",\"code\":" + std::to_string(status_of(error)) + "}}";
}

}  // namespace sightline::api
