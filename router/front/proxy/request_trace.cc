// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/request_trace.h"

#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_reuse.h"

namespace sightline::proxy {
namespace {

std::string_view overlap_of(const Expectation& expectation) {
  if (expectation.overlap_blocks == 0) return "none";
  return 2 * expectation.overlap_blocks >= expectation.prompt_blocks ? "most" : "part";
}

}  // namespace

RequestTrace::RequestTrace(const Deps& services, std::string_view route, std::string request_id)
    : services_(services),
      route_(route),
      request_id_(std::move(request_id)),
      start_(services.clock.now()) {
  services_.metrics.gauge(contract::kRequestsActive).add(1);
}

RequestTrace::~RequestTrace() {
  const Instant end = services_.clock.now();
  write_log(end);
  count(end);
  services_.metrics.gauge(contract::kRequestsActive).add(-1);
}

void RequestTrace::parsed(bool stream) { stream_ = stream; }

void RequestTrace::prepared(const Keyed& keyed, const prepare::Prepared& prepared) {
  prepared_at_ = services_.clock.now();
  prompt_tokens_ = keyed.inquiry.job.prompt_tokens;
  prompt_estimated_ = keyed.prompt_estimated;
  images_ = prepared.media.size();
  gap_ = prepare::name_of(prepared.gap);
}

void RequestTrace::sent(const Expectation& expectation) {
  sent_at_ = services_.clock.now();
  // A retry begins with a new measurement.
  first_token_at_ = {};
  expectation_ = expectation;
}

void RequestTrace::first_token() {
  first_token_at_ = services_.clock.now();
  count_begun();
}

// Counted immediately and not at the end of the answer. An engine that begins no more answers is
// thus visible soon.
void RequestTrace::count_begun() const {
  if (!expectation_) return;
  services_.metrics.counter(contract::kAnswersBegunTotal, {expectation_->worker}).add();
}

void RequestTrace::retried(std::string_view worker, const Error& error) {
  ++retries_;
  services_.metrics.counter(contract::kRetriesTotal, {worker, name_of(error.code)}).add();
}

void RequestTrace::answered(int status, const std::optional<openai::Usage>& usage) {
  status_ = status;
  usage_ = usage;
  // An answer without streaming has no first token. It is counted here.
  if (first_token_at_ == Instant{}) count_begun();
}

void RequestTrace::failed(int status, const Error& error) {
  status_ = status;
  error_ = error;
}

std::optional<Duration> RequestTrace::first_token_after() const {
  if (first_token_at_ == Instant{} || sent_at_ == Instant{}) return std::nullopt;
  return first_token_at_ - sent_at_;
}

double RequestTrace::seconds(Instant from, Instant to) const {
  if (from == Instant{} || to == Instant{}) return 0;
  return std::chrono::duration<double>(to - from).count();
}

void RequestTrace::write_log(Instant end) const {
  if (!log_enabled(LogLevel::Info)) return;
  std::string message = "[ROUTING] No worker";
  std::vector<LogField> fields{{"request_id", request_id_}, {"route", route_}};
  if (expectation_) {
    message = "[ROUTING] Best: worker_" + expectation_->worker;
    if (expectation_->rank) message += " dp_rank=" + std::to_string(*expectation_->rank);
    message += " with " + std::to_string(expectation_->overlap_blocks) + "/" +
               std::to_string(expectation_->prompt_blocks) + " blocks overlap";
    fields.emplace_back("reason", expectation_->reason);
    fields.emplace_back("block_size", expectation_->block_size);
  }
  fields.emplace_back("status", status_);
  fields.emplace_back("stream", stream_);
  fields.emplace_back("tokens", prompt_tokens_);
  if (prompt_estimated_) fields.emplace_back("tokens_estimated", true);
  fields.emplace_back("images", images_);
  if (gap_ != "none") fields.emplace_back("not_counted", gap_);
  if (retries_ > 0) fields.emplace_back("retries", retries_);
  if (usage_ && usage_->cached_tokens) {
    fields.emplace_back("cached_tokens", *usage_->cached_tokens);
  }
  // A phase that was not reached has the time 0.
  fields.emplace_back("prepare_ms", seconds(start_, prepared_at_) * 1e3);
  fields.emplace_back("queue_ms", seconds(prepared_at_, sent_at_) * 1e3);
  fields.emplace_back("prefill_ms", seconds(sent_at_, first_token_at_) * 1e3);
  fields.emplace_back("total_ms", seconds(start_, end) * 1e3);
  if (error_) {
    fields.emplace_back("error", name_of(error_->code));
    fields.emplace_back("blame", name_of(error_->blame));
  }
  log(LogLevel::Info, message, fields);
}

void RequestTrace::count(Instant end) const {
  runtime::Metrics& metrics = services_.metrics;
  metrics.counter(contract::kRequestsTotal, {route_, std::to_string(status_)}).add();
  const auto observe = [&](std::string_view phase, Instant from, Instant to) {
    if (from == Instant{} || to == Instant{}) return;
    metrics.histogram(contract::kRequestDurationSeconds, {phase}).observe(seconds(from, to));
  };
  observe("prepare", start_, prepared_at_);
  observe("queue", prepared_at_, sent_at_);
  observe("prefill", sent_at_, first_token_at_);
  observe("total", start_, end);
  if (gap_ != "none") metrics.counter(contract::kUnroutedOverlapTotal, {gap_}).add();
  if (error_) {
    const Error& error = *error_;
    metrics.counter(contract::kRequestErrorsTotal, {name_of(error.code), name_of(error.blame)})
        .add();
    if (!error.limit.empty()) metrics.counter(contract::kLimitHitsTotal, {error.limit}).add();
    if (error.code == ErrorCode::Cancelled)
      metrics.counter(contract::kClientDisconnectsTotal).add();
  }
  if (!expectation_) return;
  const std::string& worker = expectation_->worker;
  metrics.counter(contract::kOverlapBlocksTotal, {worker})
      .add(static_cast<double>(expectation_->overlap_blocks));
  metrics.counter(contract::kPromptBlocksTotal, {worker})
      .add(static_cast<double>(expectation_->prompt_blocks));
  metrics.counter(contract::kPromptTokensTotal, {worker}).add(static_cast<double>(prompt_tokens_));
  // Only streams have a first token.
  if (first_token_at_ == Instant{}) return;
  metrics.histogram(contract::kFirstTokenSeconds, {overlap_of(*expectation_)})
      .observe(seconds(start_, first_token_at_));
}

}  // namespace sightline::proxy
