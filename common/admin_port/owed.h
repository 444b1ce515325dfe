// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <optional>

#include "common/admin_port/admin_server.h"
#include "common/base/mutex.h"
#include "common/runtime/task.h"

namespace sightline::admin_port {

// The one answer that a request gets, from whichever thread gives it first.
// Thread safety: give() and is_awaited() from any thread, the rest on the I/O thread `home`.
class Owed : public std::enable_shared_from_this<Owed> {
 public:
  // `come` opens when the answer is there; it lives until abandon(), as does home's context.
  Owed(Executor home, Gate& come) : home_(std::move(home)), come_(&come) {}

  // What gives the answer; the end of its last copy without that gives 503.
  [[nodiscard]] AdminServer::Respond respond();
  [[nodiscard]] bool is_awaited() const;

  // Nobody waits any more: what is given from now on is dropped.
  void abandon();
  // The answer, once it has come.
  [[nodiscard]] std::optional<AdminResponse> take();

 private:
  void give(const AdminResponse& response);

  const Executor home_;
  Gate* come_;  // null: nobody waits
  mutable Mutex mutex_;
  bool is_awaited_ SL_GUARDED_BY(mutex_) = true;
  std::optional<AdminResponse> response_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::admin_port
