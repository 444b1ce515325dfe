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

// Why a request has no result. The first group are reasons of the API server's Status objects.
enum class Reason {
  NotFound,
  AlreadyExists,
  // Also conflicts of field managers: cause FieldManagerConflict.
  Conflict,
  Invalid,
  // 410: the resourceVersion or continue token is too old.
  Expired,
  TooManyRequests,
  ServerTimeout,
  // The server's own timeout. For a resourceVersion of the future: cause ResourceVersionTooLarge.
  Timeout,
  InternalError,
  ServiceUnavailable,
  Unauthorized,
  // Also a creation in a namespace that ends: cause NamespaceTerminating.
  Forbidden,
  RequestEntityTooLarge,
  UnsupportedMediaType,
  MethodNotAllowed,
  NotAcceptable,
  BadRequest,
  // Any other status.
  Unknown,

  // Nothing was sent.
  ConnectionRefused,
  // No address, no TLS, or a broken connection.
  Unreachable,
  // Our own deadline.
  Deadline,
  // This process may not write. Nothing was sent.
  NotLeading,
  // The answer exceeds our limit.
  LimitExceeded,
  // The answer is not of the API server's form.
  Malformed,
  // This process stops.
  Cancelled,
  // There are no usable credentials or certificates. Nothing was sent.
  Misconfigured,
};

// A detail of a failure.
struct Cause {
  std::string reason;
  std::string message;
  std::string field;
};

// A failed request. `message` is for logs and conditions, and never contains credentials.
struct [[nodiscard]] Failure {
  Reason reason = Reason::Unknown;
  // The HTTP status. 0: there was no answer.
  int status = 0;
  std::string message;
  std::vector<Cause> causes;
  std::optional<Duration> retry_after;
  // A change that may have been carried out: read the object before a retry.
  bool is_outcome_unknown = false;
};

// Reasons of causes.
inline constexpr std::string_view kFieldManagerConflict = "FieldManagerConflict";
inline constexpr std::string_view kNamespaceTerminating = "NamespaceTerminating";
// Set by this operator: another owner has an object of this name.
inline constexpr std::string_view kNameTaken = "NameTaken";
inline constexpr std::string_view kVersionTooLarge = "ResourceVersionTooLarge";

// The API server's word, for example "NotFound". For logs and metrics.
[[nodiscard]] std::string_view name_of(Reason reason);
// Whether the failure has a cause with this reason.
[[nodiscard]] bool has_cause(const Failure& failure, std::string_view reason);

// The failure in a Status object. Without a known reason the object's code decides, and without a
// code http_status.
[[nodiscard]] Failure failure_of(const object::Value& status, int http_status);
// The same for an answer of which only the HTTP status can be used.
[[nodiscard]] Failure failure_of(int http_status, std::string_view body);

// The failure as an Error. Retryable if the same request may succeed later.
[[nodiscard]] Error to_error(const Failure& failure);

template <class T>
using Answer = Result<T, Failure>;

// Whether it failed for this reason.
template <class T>
[[nodiscard]] bool failed(const Answer<T>& answer, Reason reason) {
  return !answer.ok() && answer.error().reason == reason;
}

}  // namespace sightline::client
