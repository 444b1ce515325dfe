// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

namespace sightline {

// What went wrong. One table maps these to HTTP: openai/error_body.cc.
enum class ErrorCode {
  InvalidArgument,   // the request is malformed or asks for something impossible
  Unauthorized,      // a peer refused our or the client's credentials
  NotFound,          // no such model, path or item
  MethodNotAllowed,  // known path, other method
  TooLarge,          // a limit on size or count was exceeded
  Unsupported,       // well-formed, but outside what this build can do
  Overloaded,        // a limit on concurrent work was reached; the same request may pass later
  Unavailable,       // a peer could not be reached or gave no usable answer
  OutOfDate,         // the question rests on what holds no more; ask again with what is known now
  Timeout,           // a deadline passed
  Cancelled,         // the asker went away
  Corrupt,           // bytes from a peer that break their own format
  Internal,          // a fault of ours
};

// Whose fault it is: sets the HTTP class and the metric label.
enum class Blame { Client, Worker, Internal };

// A recoverable failure. message is one line for a human and never holds prompts, image bytes,
// engine addresses or secrets, since it may reach the client. param names the request field at
// fault (OpenAI's error.param), empty if none. retryable: the same work may succeed elsewhere.
// limit names the setting whose limit was exceeded ("media-image-bytes-max"), empty if none: metric
// label.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::Internal;
  Blame blame = Blame::Internal;
  bool retryable = false;
  std::string message;
  std::string param;
  std::string limit;
};

// "invalid_argument", "not_found", …: metric label and log field.
std::string_view name_of(ErrorCode code);
std::string_view name_of(Blame blame);

// The client's fault; never retried.
Error client_error(ErrorCode code, std::string message, std::string param = {});
// The client exceeded the limit of that setting; never retried.
Error limit_error(ErrorCode code, std::string limit, std::string message, std::string param = {});
// The limit of that setting on what may go on at the same time is reached, which `what` says;
// retrying helps. Names limit and remedy.
Error overload_error(std::string limit, std::string_view what);
// A worker's fault; retryable says whether another worker may do better.
Error worker_error(ErrorCode code, std::string message, bool retryable);
// Our own fault.
Error internal_error(std::string message);

// The same error with "<context>: " put in front of its message.
Error with_context(Error error, std::string_view context);

}  // namespace sightline
