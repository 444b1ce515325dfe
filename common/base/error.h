// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

namespace sightline {

// The kind of a failure. openai/error_body.cc maps each code to an HTTP status.
enum class ErrorCode {
  // The request is malformed or asks for something impossible.
  InvalidArgument,
  // A peer refused our credentials, or we refused the client's.
  Unauthorized,
  // A model, path or item does not exist.
  NotFound,
  // The path is known, but not with this method.
  MethodNotAllowed,
  // The request exceeds a limit on size or count.
  TooLarge,
  // The request is well-formed, but this build cannot serve it.
  Unsupported,
  // A limit on concurrent work is reached. The same request may succeed later.
  Overloaded,
  // A peer could not be reached or gave no usable answer.
  Unavailable,
  // The request relies on state that has changed. Read the state and ask again.
  OutOfDate,
  // A deadline passed.
  Timeout,
  // The caller went away.
  Cancelled,
  // A peer sent bytes that break their format.
  Corrupt,
  // A fault of this program.
  Internal,
};

// Who is at fault. Sets the HTTP class and the metric label.
enum class Blame { Client, Worker, Internal };

// A recoverable failure.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::Internal;
  Blame blame = Blame::Internal;
  // Whether the same work may succeed elsewhere.
  bool retryable = false;
  // One line for a human. It may reach the client, so it never contains prompts, image bytes,
  // engine addresses or secrets.
  std::string message;
  // The request field at fault, as OpenAI's `error.param`. Empty if no field is at fault.
  std::string param;
  // The setting whose limit was exceeded, for example "media-image-bytes-max", for a metric label.
  // Empty if no limit was exceeded.
  std::string limit;
};

// "invalid_argument", "not_found" and so on, for metric labels and log fields.
std::string_view name_of(ErrorCode code);
std::string_view name_of(Blame blame);

// The client is at fault. Not retryable.
Error client_error(ErrorCode code, std::string message, std::string param = {});
// The client exceeded the limit of setting `limit`. Not retryable.
Error limit_error(ErrorCode code, std::string limit, std::string message, std::string param = {});
// The limit `limit` on concurrent work is reached. `what` says which work. Retryable. The message
// names the limit and the remedy.
Error overload_error(std::string limit, std::string_view what);
// A worker is at fault. retryable says whether another worker may succeed.
Error worker_error(ErrorCode code, std::string message, bool retryable);
// This program is at fault. Not retryable.
Error internal_error(std::string message);

// Returns the error with "<context>: " in front of its message.
Error with_context(Error error, std::string_view context);

}  // namespace sightline
