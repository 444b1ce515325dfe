// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <optional>

#include "common/admin_port/admin_server.h"
#include "common/base/mutex.h"
#include "common/runtime/task.h"

namespace sightline::admin_port {

// The one answer that a request gets, from the thread that gives it first.
// Thread safety: give() and is_awaited() from any thread, the rest on the I/O thread `home`.
class Owed : public std::enable_shared_from_this<Owed> {
 public:
  // Opens `come` when the answer is there. `come` and home's context exist until abandon().
  Owed(Executor home, Gate& come) : home_(std::move(home)), come_(&come) {}

  // A function that gives the answer. If its last copy is destroyed before, the answer is 503.
  [[nodiscard]] AdminServer::Respond respond();
  // False after abandon(). Then no code needs to make the answer.
  [[nodiscard]] bool is_awaited() const;

  // No caller waits any more: drops a later answer.
  void abandon();
  // The answer, if it has come.
  [[nodiscard]] std::optional<AdminResponse> take();

 private:
  // Keeps the first answer and opens the gate on `home`. Drops later answers.
  void give(const AdminResponse& response);

  const Executor home_;
  // Null: no caller waits.
  Gate* come_;
  mutable Mutex mutex_;
  bool is_awaited_ SL_GUARDED_BY(mutex_) = true;
  std::optional<AdminResponse> response_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::admin_port
