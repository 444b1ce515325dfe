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

// Writes one answer to a chat or completion request, with the plan's faults on it. Has the
// methods of http::ResponseWriter that answers need, with their contracts.
// Thread safety: none; on the I/O thread that runs the handler.
class AnswerWriter {
 public:
  // Draws which faults strike this answer. The writer outlives it; the plan is not kept.
  AnswerWriter(http::ResponseWriter& writer, FaultPlan& plan, const std::string& request_id);
  ~AnswerWriter();
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;

  // True if a fault answered in place of the engine: the caller is done.
  Task<bool> answered_by_fault();

  Task<Result<Done>> send(http::Response response);
  Task<Result<Done>> begin(int status, http::Headers headers);
  // text: whole server-sent events.
  Task<Result<Done>> write(std::string_view text);
  Task<Result<Done>> finish();
  void on_disconnect(std::function<void()> callback);

 private:
  struct Silence;
  // Strikes when the answer has come to its first `after_events` events.
  Task<Result<Done>> strike();
  [[nodiscard]] std::optional<std::uint32_t> events_until_strike() const;

  http::ResponseWriter& writer_;
  std::optional<Fault> refusal_;  // status500 or garbage
  std::optional<Fault> break_;    // die-midstream or stall, until it has struck
  std::uint32_t events_ = 0;      // written
  std::function<void()> on_left_;
  std::shared_ptr<Silence> silence_;
};

}  // namespace sightline::faults
