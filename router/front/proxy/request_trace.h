// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/error.h"

#include "router/front/proxy/pipeline.h"
#include "router/front/proxy/services.h"
#include "router/openai/usage.h"
#include "router/prompt/prepare/prepare.h"

namespace sightline::proxy {

// What the router expects of the chosen worker or rank.
struct Expectation {
  std::string worker;
  // The data-parallel rank, if the worker has several.
  std::optional<std::uint32_t> rank;
  // X of X/Y: the blocks that the worker is expected to reuse.
  std::uint64_t overlap_blocks = 0;
  // Y: the whole blocks of the prompt.
  std::uint64_t prompt_blocks = 0;
  std::uint32_t block_size = 0;
  // Why this worker was chosen.
  std::string reason;
};

// The facts about a failed request that its client gets besides the error.
struct Advice {
  // Retry-After of the engine.
  std::optional<std::uint32_t> retry_after_s;
  // The worker's own error in OpenAI's shape, or empty.
  std::string body;
  // The client must not send the same request again.
  bool is_useless_again = false;
};

// The facts and times of one request. Its steps add them. When the request ends, the destructor
// writes the one log line and counts the metrics, for every kind of end.
//
// Not thread-safe: each request has its own.
class RequestTrace {
 public:
  // `route` is a metric label. `services` must live longer.
  RequestTrace(const Deps& services, std::string_view route, std::string request_id);
  ~RequestTrace();
  RequestTrace(const RequestTrace&) = delete;
  RequestTrace& operator=(const RequestTrace&) = delete;

  [[nodiscard]] const std::string& request_id() const { return request_id_; }

  // Record the steps of the request: the body was read, the prompt was prepared, an attempt was
  // sent, its
  // first token came.
  void parsed(bool stream);
  // If the number of prompt tokens is estimated, the log line says so.
  void prepared(const Keyed& keyed, const prepare::Prepared& prepared);
  void sent(const Expectation& expectation);
  void first_token();
  // Counts an attempt that failed and is followed by another one.
  void retried(std::string_view worker, const Error& error);
  // Record how the request ended.
  void answered(int status, const std::optional<openai::Usage>& usage);
  void failed(int status, const Error& error);
  // Sets the facts for the client besides the error.
  void advise(Advice advice) { advice_ = std::move(advice); }
  [[nodiscard]] const Advice& advice() const { return advice_; }

  // Returns the time from the choice of the worker to the first token. Absent if no token came or
  // the answer is not a stream.
  [[nodiscard]] std::optional<Duration> first_token_after() const;
  // Returns whether an answer or an error was recorded.
  [[nodiscard]] bool is_settled() const { return status_ != 0; }

 private:
  // Writes the one log line of the request.
  void write_log(Instant end) const;
  // Adds the request to the metrics.
  void count(Instant end) const;
  void count_begun() const;
  // Returns 0 if one of the times was not reached.
  [[nodiscard]] double seconds(Instant from, Instant to) const;

  const Deps& services_;
  const std::string route_;
  const std::string request_id_;
  const Instant start_;
  Instant prepared_at_{};
  Instant sent_at_{};
  Instant first_token_at_{};
  bool stream_ = false;
  std::size_t prompt_tokens_ = 0;
  bool prompt_estimated_ = false;
  std::size_t images_ = 0;
  std::uint32_t retries_ = 0;
  std::string gap_ = "none";
  std::optional<Expectation> expectation_;
  int status_ = 0;
  std::optional<Error> error_;
  std::optional<openai::Usage> usage_;
  Advice advice_;
};

}  // namespace sightline::proxy
