// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

#include "operator/kube/client/failure.h"

namespace sightline::rest {

// A request to the API server.
struct HttpRequest {
  std::string method;
  // Path and query.
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  // The type of the body, if there is one.
  std::string content_type;
  std::string body;
};

// A whole answer.
struct HttpAnswer {
  int status = 0;
  std::string body;
  // The value of Retry-After in seconds.
  std::optional<Duration> retry_after;
};

// The body of an answer, as it arrives.
// Thread safety: read() from one thread, cancel() from any.
class Stream {
 public:
  struct Piece {
    // Empty: no byte arrived within time_max.
    std::string bytes;
    // The answer is complete.
    bool is_end = false;
  };
  virtual ~Stream() = default;
  // Waits for the next bytes, at most time_max.
  virtual client::Answer<Piece> read(Duration time_max) = 0;
  // Makes a read() that waits fail.
  virtual void cancel() = 0;
};

// Sends requests with the identity of this process, and limits the size of answers.
// Thread safety: all methods from any thread.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends a request and returns the whole answer. Fails if it does not arrive within time_max. Then
  // is_outcome_unknown says whether the request was, or may have been, sent.
  virtual client::Answer<HttpAnswer> exchange(const HttpRequest& request, Duration time_max) = 0;

  // With status 200: the answer's body as a stream. Otherwise the whole answer.
  struct Opened {
    HttpAnswer answer;
    std::unique_ptr<Stream> stream;
  };
  // Like exchange(). time_max limits the wait for the header of the answer.
  virtual client::Answer<Opened> open(const HttpRequest& request, Duration time_max) = 0;
};

}  // namespace sightline::rest
