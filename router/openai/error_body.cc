// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/error_body.h"

#include "common/base/bytes.h"
#include "common/base/json.h"

namespace sightline::openai {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "AuthenticationError";
    case 404:
      return "NotFoundError";
    case 405:
      return "MethodNotAllowedError";
    case 408:
    case 504:
      return "TimeoutError";
    case 422:
      return "UnprocessableEntityError";
    case 501:
      return "NotImplementedError";
    case 502:
    case 503:
      return "ServiceUnavailableError";
    case 505:
      return "BadRequestError";
    default:
      return status < 500 ? "BadRequestError" : "InternalServerError";
  }
}

}  // namespace

int http_status_of(const Error& error) {
  // The same code is a 4xx if the client caused it, and a 5xx if a worker or the router did.
  const bool client = error.blame == Blame::Client;
  switch (error.code) {
    case ErrorCode::InvalidArgument:
      return client ? 400 : 502;
    case ErrorCode::Unauthorized:
      return client ? 401 : 502;
    case ErrorCode::NotFound:
      return client ? 404 : 502;
    case ErrorCode::MethodNotAllowed:
      return 405;
    case ErrorCode::TooLarge:
      return client ? 413 : 502;
    case ErrorCode::Unsupported:
      return client ? 422 : 500;
    case ErrorCode::Overloaded:
    case ErrorCode::OutOfDate:
      return 503;
    case ErrorCode::Unavailable:
      // A client's part is unavailable if the host of its image cannot be reached.
      return client ? 422 : (error.blame == Blame::Worker ? 502 : 503);
    case ErrorCode::Timeout:
      return client ? 408 : 504;
    case ErrorCode::Corrupt:
      return client ? 400 : 502;
    case ErrorCode::Cancelled:
      return 499;  // never sent: nginx's number for a client that left, for logs and metrics
    case ErrorCode::Internal:
      return 500;
  }
  return 500;
}

std::string error_body(const Error& error) { return error_body(error, http_status_of(error)); }

std::string error_body(const Error& error, int status) {
  std::string body = R"({"error":{"message":)";
  json::append_quoted(body, error.message);
  body += R"(,"type":)";
  json::append_quoted(body, type_of(status));
  body += R"(,"param":)";
  if (error.param.empty()) {
    body += "null";
  } else {
    json::append_quoted(body, error.param);
  }
  body += R"(,"code":)" + std::to_string(status) + "}}";
  return body;
}

Error no_such_model(std::string_view name) {
  constexpr std::size_t kShownNameBytesMax = 256;
  std::string shown(is_utf8(name) ? utf8_prefix(name.substr(0, kShownNameBytesMax), name.size())
                                  : std::string_view());
  // The name comes from the client, so the answer repeats only its beginning.
  if (is_utf8(name) && shown.size() < name.size()) shown += "…";
  return client_error(ErrorCode::NotFound, "The model `" + shown + "` does not exist.", "model");
}

std::string error_event(const Error& error) { return "data: " + error_body(error) + "\n\n"; }

}  // namespace sightline::openai
