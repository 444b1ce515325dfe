// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/http/server.h"
#include "common/runtime/task.h"

#include "simulator/faults/fault_plan.h"

namespace sightline::faults {

// Writes one answer to a chat or completion request, with the faults of the plan. Its methods have
// the contracts of the methods of http::ResponseWriter with the same names.
//
// Not thread-safe: use it on the I/O thread that runs the handler.
class AnswerWriter {
 public:
  // Draws the faults of this answer. The writer must live longer. The plan is not kept.
  AnswerWriter(http::ResponseWriter& writer, FaultPlan& plan, const std::string& request_id);
  ~AnswerWriter();
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;

  // Returns true if a fault answered in place of the engine. The caller must then write nothing.
  Task<bool> answered_by_fault();

  Task<Result<Done>> send(http::Response response);
  Task<Result<Done>> begin(int status, http::Headers headers);
  // `text` must be whole server-sent events.
  Task<Result<Done>> write(std::string_view text);
  Task<Result<Done>> finish();
  void on_disconnect(std::function<void()> callback);

 private:
  struct Silence;
  // Applies the fault. Call it when the first `after_events` events are written.
  Task<Result<Done>> strike();
  [[nodiscard]] std::optional<std::uint32_t> events_until_strike() const;

  http::ResponseWriter& writer_;
  // Status500 or GarbageHttp.
  std::optional<Fault> refusal_;
  // DieMidstream or Stall, until the fault was applied.
  std::optional<Fault> break_;
  // The number of events written.
  std::uint32_t events_ = 0;
  std::function<void()> on_left_;
  std::shared_ptr<Silence> silence_;
};

}  // namespace sightline::faults
