// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/client/failure.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "common/base/bytes.h"

namespace sightline::client {
namespace {

// The most bytes that a body without a Status object adds to a message.
constexpr std::size_t kForeignTextBytesMax = 200;
// More causes than the API server sends for one object.
constexpr std::size_t kCausesMax = 100;
// A server may demand more, but this operator would then seem to hang.
constexpr std::int64_t kRetryAfterSecondsMax = 600;

struct StatusRow {
  Reason reason;
  std::string_view name;
  int status;  // the status with this meaning, if the reason is missing. 0: no status
  ErrorCode code;
  bool is_retryable;
};

constexpr std::array kRows = {
    StatusRow{Reason::NotFound, "NotFound", 404, ErrorCode::NotFound, false},
    StatusRow{Reason::AlreadyExists, "AlreadyExists", 0, ErrorCode::InvalidArgument, false},
    StatusRow{Reason::Conflict, "Conflict", 409, ErrorCode::Unavailable, true},
    StatusRow{Reason::Invalid, "Invalid", 422, ErrorCode::InvalidArgument, false},
    StatusRow{Reason::Expired, "Expired", 410, ErrorCode::Unavailable, true},
    StatusRow{Reason::Expired, "Gone", 0, ErrorCode::Unavailable, true},  // before Kubernetes 1.18
    StatusRow{Reason::TooManyRequests, "TooManyRequests", 429, ErrorCode::Overloaded, true},
    StatusRow{Reason::ServerTimeout, "ServerTimeout", 0, ErrorCode::Unavailable, true},
    StatusRow{Reason::Timeout, "Timeout", 504, ErrorCode::Timeout, true},
    StatusRow{Reason::InternalError, "InternalError", 500, ErrorCode::Unavailable, true},
    StatusRow{Reason::ServiceUnavailable, "ServiceUnavailable", 503, ErrorCode::Unavailable, true},
    StatusRow{Reason::Unauthorized, "Unauthorized", 401, ErrorCode::Unauthorized, true},
    StatusRow{Reason::Forbidden, "Forbidden", 403, ErrorCode::Unauthorized, false},
    StatusRow{Reason::RequestEntityTooLarge, "RequestEntityTooLarge", 413, ErrorCode::TooLarge,
              false},
    StatusRow{Reason::UnsupportedMediaType, "UnsupportedMediaType", 415, ErrorCode::Unsupported,
              false},
    StatusRow{Reason::MethodNotAllowed, "MethodNotAllowed", 405, ErrorCode::MethodNotAllowed,
              false},
    StatusRow{Reason::NotAcceptable, "NotAcceptable", 406, ErrorCode::Unsupported, false},
    StatusRow{Reason::BadRequest, "BadRequest", 400, ErrorCode::InvalidArgument, false},
    StatusRow{Reason::Unknown, "Unknown", 0, ErrorCode::Unavailable, false},
    StatusRow{Reason::ConnectionRefused, "ConnectionRefused", 0, ErrorCode::Unavailable, true},
    StatusRow{Reason::Unreachable, "Unreachable", 0, ErrorCode::Unavailable, true},
    StatusRow{Reason::Deadline, "Deadline", 0, ErrorCode::Timeout, true},
    StatusRow{Reason::NotLeading, "NotLeading", 0, ErrorCode::Cancelled, false},
    StatusRow{Reason::LimitExceeded, "LimitExceeded", 0, ErrorCode::TooLarge, false},
    StatusRow{Reason::Malformed, "Malformed", 0, ErrorCode::Corrupt, true},
    StatusRow{Reason::Cancelled, "Cancelled", 0, ErrorCode::Cancelled, false},
    StatusRow{Reason::Misconfigured, "Misconfigured", 0, ErrorCode::Unauthorized, true},
};
// A server uses only these reasons.
constexpr std::size_t kServerRows = 19;

const StatusRow& row_of(Reason reason) {
  return *std::find_if(kRows.begin(), kRows.end(),
                       [&](const StatusRow& row) { return row.reason == reason; });
}

Reason reason_of(std::string_view name, int status) {
  for (std::size_t i = 0; i < kServerRows; ++i) {
    // "Unknown" says less than the status.
    if (!name.empty() && kRows.at(i).name == name && name != "Unknown") return kRows.at(i).reason;
  }
  for (const StatusRow& row : kRows) {
    if (status != 0 && row.status == status) return row.reason;
  }
  return Reason::Unknown;
}

}  // namespace

std::string_view name_of(Reason reason) { return row_of(reason).name; }

bool has_cause(const Failure& failure, std::string_view reason) {
  return std::any_of(failure.causes.begin(), failure.causes.end(),
                     [&](const Cause& cause) { return cause.reason == reason; });
}

Failure failure_of(const object::Value& status, int http_status) {
  Failure failure;
  failure.status = static_cast<int>(status["code"].integer().value_or(http_status));
  failure.reason = reason_of(status["reason"].text(), failure.status);
  failure.message = status["message"].text();
  if (failure.message.empty()) failure.message = "status " + std::to_string(failure.status);
  for (const object::Value& cause : status.at({"details", "causes"}).items()) {
    if (failure.causes.size() == kCausesMax) break;
    failure.causes.push_back({std::string(cause["reason"].text()),
                              std::string(cause["message"].text()),
                              std::string(cause["field"].text())});
  }
  const auto seconds = status.at({"details", "retryAfterSeconds"}).integer();
  if (seconds && *seconds > 0) {
    failure.retry_after = std::chrono::seconds(std::min(*seconds, kRetryAfterSecondsMax));
  }
  return failure;
}

Failure failure_of(int http_status, std::string_view body) {
  const auto status = object::Value::parse(std::string(body));
  if (status.ok() && (*status)["kind"].text() == "Status") return failure_of(*status, http_status);
  Failure failure;
  failure.status = http_status;
  failure.reason = reason_of({}, http_status);
  failure.message = "status " + std::to_string(http_status);
  const std::string_view text = utf8_prefix(body.substr(0, kForeignTextBytesMax), body.size());
  if (!text.empty()) failure.message += ": " + std::string(text);
  std::replace_if(
      failure.message.begin(), failure.message.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return failure;
}

Error to_error(const Failure& failure) {
  const StatusRow& row = row_of(failure.reason);
  Error error{row.code, Blame::Internal, row.is_retryable, {}, {}, {}};
  error.message = "API server: " + std::string(row.name) + ": " + failure.message;
  if (!failure.causes.empty()) error.param = failure.causes.front().field;
  return error;
}

}  // namespace sightline::client
