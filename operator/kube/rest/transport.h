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

struct HttpRequest {
  std::string method;
  std::string target;  // path and query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string content_type;  // of the body, if there is one
  std::string body;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::optional<Duration> retry_after;  // Retry-After, in seconds
};

// The body of an answer as it comes.
// Thread safety: read() from one thread, cancel() from any.
class Stream {
 public:
  struct Piece {
    std::string bytes;    // none: nothing came in the time that was given
    bool is_end = false;  // the answer is complete
  };
  virtual ~Stream() = default;
  virtual client::Answer<Piece> read(Duration time_max) = 0;
  virtual void cancel() = 0;
};

// Sends requests, as whoever this process is, and bounds what comes back.
// Thread safety: all methods from any thread.
class Transport {
 public:
  virtual ~Transport() = default;

  // Fails if there is no whole answer in that time; is_outcome_unknown: the request was, or may
  // have been, sent.
  virtual client::Answer<HttpAnswer> exchange(const HttpRequest& request, Duration time_max) = 0;

  // With status 200, the answer's body as a stream; else the whole answer.
  struct Opened {
    HttpAnswer answer;
    std::unique_ptr<Stream> stream;
  };
  // The time is that until the head of the answer.
  virtual client::Answer<Opened> open(const HttpRequest& request, Duration time_max) = 0;
};

}  // namespace sightline::rest
