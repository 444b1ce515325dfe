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

// What the router expected of the chosen worker, or of that rank of it.
struct Expectation {
  std::string worker;
  std::optional<std::uint32_t> rank;  // data-parallel rank, where the worker has several
  std::uint64_t overlap_blocks = 0;   // X of X/Y: blocks the worker is expected to reuse
  std::uint64_t prompt_blocks = 0;    // Y: whole blocks of the prompt
  std::uint32_t block_size = 0;
  std::string reason;  // why this worker
};

// What a client is told of a request that failed, besides its error.
struct Advice {
  std::optional<std::uint32_t> retry_after_s;  // as the engine said
  std::string body;                            // the worker's own error, in OpenAI's shape; or ""
  bool is_useless_again = false;               // it must not be sent again as it is
};

// Facts and times of one request, gathered while it passes its steps. When it ends, on whatever
// way, it writes the one log line and counts the metrics.
// Thread safety: none; one per request.
class RequestTrace {
 public:
  // route: metric label. services must outlive it.
  RequestTrace(const Services& services, std::string_view route, std::string request_id);
  ~RequestTrace();
  RequestTrace(const RequestTrace&) = delete;
  RequestTrace& operator=(const RequestTrace&) = delete;

  [[nodiscard]] const std::string& request_id() const { return request_id_; }

  void parsed(bool stream);
  // Where the number of prompt tokens is a guess, the log line says so.
  void prepared(const Keyed& keyed, const prepare::Prepared& prepared);
  void sent(const Expectation& expectation);
  void first_token();
  void retried(std::string_view worker, const Error& error);
  void answered(int status, const std::optional<openai::Usage>& usage);
  void failed(int status, const Error& error);
  // What the client is told besides the error.
  void advise(Advice advice) { advice_ = std::move(advice); }
  [[nodiscard]] const Advice& advice() const { return advice_; }

  // From the choice of the worker to the first token. Nothing: none came, or it is no stream.
  [[nodiscard]] std::optional<Duration> first_token_after() const;
  // True if an answer or an error has been noted.
  [[nodiscard]] bool is_settled() const { return status_ != 0; }

 private:
  void write_log(Instant end) const;
  void count(Instant end) const;
  void count_begun() const;
  [[nodiscard]] double seconds(Instant from, Instant to) const;

  const Services& services_;
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
