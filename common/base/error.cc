// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/error.h"

#include <utility>

namespace sightline {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid_argument";
    case ErrorCode::Unauthorized:
      return "unauthorized";
    case ErrorCode::NotFound:
      return "not_found";
    case ErrorCode::MethodNotAllowed:
      return "method_not_allowed";
    case ErrorCode::TooLarge:
      return "too_large";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::Overloaded:
      return "overloaded";
    case ErrorCode::Unavailable:
      return "unavailable";
    case ErrorCode::OutOfDate:
      return "out_of_date";
    case ErrorCode::Timeout:
      return "timeout";
    case ErrorCode::Cancelled:
      return "cancelled";
    case ErrorCode::Corrupt:
      return "corrupt";
    case ErrorCode::Internal:
      return "internal";
  }
  return "internal";
}

std::string_view name_of(Blame blame) {
  switch (blame) {
    case Blame::Client:
      return "client";
    case Blame::Worker:
      return "worker";
    case Blame::Internal:
      return "internal";
  }
  return "internal";
}

// Not retryable: the same request would fail again on each worker.
Error client_error(ErrorCode code, std::string message, std::string param) {
  return Error{code, Blame::Client, false, std::move(message), std::move(param), {}};
}

Error limit_error(ErrorCode code, std::string limit, std::string message, std::string param) {
  Error error = client_error(code, std::move(message), std::move(param));
  error.limit = std::move(limit);
  return error;
}

Error overload_error(std::string limit, std::string_view what) {
  // The setting's name shows an operator which limit to raise.
  auto message = std::string(what) + " (" + limit + "). Try again shortly";
  return Error{ErrorCode::Overloaded, Blame::Internal, true, std::move(message), {},
               std::move(limit)};
}

Error worker_error(ErrorCode code, std::string message, bool retryable) {
  return Error{code, Blame::Worker, retryable, std::move(message), {}, {}};
}

Error internal_error(std::string message) {
  return Error{ErrorCode::Internal, Blame::Internal, false, std::move(message), {}, {}};
}

Error with_context(Error error, std::string_view context) {
  error.message = std::string(context) + ": " + error.message;
  return error;
}

}  // namespace sightline
