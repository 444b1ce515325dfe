// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/routers/router_admin.h"

namespace sightline::routers {

// Does not call processes for a while that made a call wait in vain. Otherwise threads that manage
// many objects would spend their time on a few dead processes. During the pause a call fails
// immediately, with the last failure. A process that refuses immediately costs nothing and gets no
// pause.
// Thread safety: see RouterAdmin.
class PatientRouterAdmin : public RouterAdmin {
 public:
  struct Options {
    // A failure that took this long counts as silence.
    Duration slow = std::chrono::milliseconds(200);
    // The first pause. Each further one is twice as long.
    Duration first = std::chrono::seconds(5);
    // The longest pause.
    Duration max = std::chrono::minutes(1);
    // The most calls at a time, of all threads, to processes that were silent last.
    std::size_t waiting_max = 1;
  };
  // `routers` and `clock` must outlive it.
  PatientRouterAdmin(Options options, RouterAdmin& routers, const Clock& clock)
      : options_(options), routers_(routers), clock_(clock) {}

  Result<judge::RouterAnswers> ask(const Address& router) override;
  Result<std::map<std::string, std::string>> settings(const Address& process) override;
  Result<Done> put(const Address& router, const std::string& path,
                   const object::Value& body) override;

  // The number of processes that are paused, or were recently.
  [[nodiscard]] std::size_t silent() const;

 private:
  // A process that was silent: the end of the pause, its length, and the failure.
  struct Silent {
    Instant until{};
    Duration wait{};
    std::string problem;
  };
  // The problem of a paused process. Empty: call it. is_suspect then says that it was silent
  // before.
  struct Entry {
    std::string problem;
    bool is_suspect = false;
  };

  // Makes a call, unless the process is paused.
  template <class Value>
  Result<Value> call(const std::string& host, const std::function<Result<Value>()>& exchange);
  // Before a call. Counts a call to a suspect process.
  Entry enter(const std::string& host);
  // After a call. A slow failure begins a pause. Any other result ends the row of pauses.
  void leave(const std::string& host, bool is_suspect, const std::string& problem, Duration took);

  const Options options_;
  RouterAdmin& routers_;
  const Clock& clock_;
  mutable Mutex mutex_;
  // By host.
  std::map<std::string, Silent> silent_ SL_GUARDED_BY(mutex_);
  // The calls to them.
  std::size_t waiting_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::routers
