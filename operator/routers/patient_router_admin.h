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

// Leaves processes alone for a while that let us wait in vain, so that those who look after many
// objects do not spend their time on a few dead ones: until then a call fails at once, with what
// went wrong last. One that refuses at once costs nothing and is asked as ever.
class PatientRouterAdmin : public RouterAdmin {
 public:
  struct Options {
    Duration slow = std::chrono::milliseconds(200);  // a failure that took so long is a silence
    Duration first = std::chrono::seconds(5);        // of being left alone; doubled each time
    Duration max = std::chrono::minutes(1);
    std::size_t waiting_max = 1;  // calls at a time, of all threads, to those that were silent last
  };
  // They must outlive it.
  PatientRouterAdmin(Options options, RouterAdmin& routers, const Clock& clock)
      : options_(options), routers_(routers), clock_(clock) {}

  Result<judge::RouterAnswers> ask(const Address& router) override;
  Result<std::map<std::string, std::string>> settings(const Address& process) override;
  Result<Done> put(const Address& router, const std::string& path,
                   const object::Value& body) override;

  // Processes that are left alone or were so lately.
  [[nodiscard]] std::size_t silent() const;

 private:
  struct Silent {
    Instant until{};
    Duration wait{};
    std::string problem;
  };
  // The problem for which it is left alone; nothing: it is called, and as a suspect if so.
  struct Entry {
    std::string problem;
    bool is_suspect = false;
  };

  template <class Value>
  Result<Value> call(const std::string& host, const std::function<Result<Value>()>& exchange);
  Entry enter(const std::string& host);
  void leave(const std::string& host, bool is_suspect, const std::string& problem, Duration took);

  const Options options_;
  RouterAdmin& routers_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, Silent> silent_ SL_GUARDED_BY(mutex_);  // by host
  std::size_t waiting_ SL_GUARDED_BY(mutex_) = 0;               // calls to those
};

}  // namespace sightline::routers
