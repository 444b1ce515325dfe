// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/result.h"

#include "operator/kube/object/value.h"

namespace sightline::client {

// Why a request has no result. The first group is what the API server says in a Status object.
enum class Reason {
  NotFound,
  AlreadyExists,
  Conflict,  // also of field managers: cause FieldManagerConflict
  Invalid,
  Expired,  // 410: that resourceVersion or continue token is too old
  TooManyRequests,
  ServerTimeout,
  Timeout,  // the server's own; a resourceVersion of the future: cause ResourceVersionTooLarge
  InternalError,
  ServiceUnavailable,
  Unauthorized,
  Forbidden,  // also creation where a namespace ends: cause NamespaceTerminating
  RequestEntityTooLarge,
  UnsupportedMediaType,
  MethodNotAllowed,
  NotAcceptable,
  BadRequest,
  Unknown,  // any other status

  ConnectionRefused,  // nothing was sent
  Unreachable,        // no name, no TLS, a connection that broke
  Deadline,           // our own
  NotLeading,         // this process may not write; nothing was sent
  LimitExceeded,      // the answer is longer than we read
  Malformed,          // the answer is not what the API server answers
  Cancelled,          // this process stops
  Misconfigured,      // no usable credentials or certificates; nothing was sent
};

struct Cause {
  std::string reason;
  std::string message;
  std::string field;
};

// message: for logs and conditions; holds no credentials.
struct [[nodiscard]] Failure {
  Reason reason = Reason::Unknown;
  int status = 0;  // HTTP; 0: there was no answer
  std::string message;
  std::vector<Cause> causes;
  std::optional<Duration> retry_after;
  // A request to change something that may have been carried out: read before trying again.
  bool is_outcome_unknown = false;
};

inline constexpr std::string_view kFieldManagerConflict = "FieldManagerConflict";
inline constexpr std::string_view kNamespaceTerminating = "NamespaceTerminating";
// Of our own making: an object of that name is there and is somebody else's.
inline constexpr std::string_view kNameTaken = "NameTaken";
inline constexpr std::string_view kVersionTooLarge = "ResourceVersionTooLarge";

// "NotFound": the API server's words, for logs and metrics.
[[nodiscard]] std::string_view name_of(Reason reason);
[[nodiscard]] bool has_cause(const Failure& failure, std::string_view reason);

// What a Status object says; one without a reason that is known is judged by its code, or by
// http_status where it has none.
[[nodiscard]] Failure failure_of(const object::Value& status, int http_status);
// The same for an answer of which only the HTTP status can be used.
[[nodiscard]] Failure failure_of(int http_status, std::string_view body);

// For the rest of the program: retryable if the same request may succeed later.
[[nodiscard]] Error to_error(const Failure& failure);

template <class T>
using Answer = Result<T, Failure>;

// Whether it failed for this reason.
template <class T>
[[nodiscard]] bool failed(const Answer<T>& answer, Reason reason) {
  return !answer.ok() && answer.error().reason == reason;
}

}  // namespace sightline::client
