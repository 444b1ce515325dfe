// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/judge/world.h"
#include "operator/kube/object/resource.h"
#include "operator/routers/router_admin.h"

namespace sightline::reconcile {

// Tells running routers and frontends what changes while they run: lists of workers and settings,
// each once and again when it is not there any more.
// Thread safety: all methods from any thread; for one MultimodalRouter from one at a time.
class Pushes {
 public:
  // They must outlive it.
  Pushes(routers::RouterAdmin& routers, const Clock& clock) : routers_(routers), clock_(clock) {}

  // What was not told, since it could not be or since `until` was over, is told the next time.
  void send(const judge::World& world, const std::string& token, Instant until);
  void forget(const object::Key& router);

 private:
  // What a process was told of settings, and what it then said of them.
  struct Told {
    std::string settings;
    std::map<std::string, std::string> read_back;
  };

  void send_lists(const judge::World& world, const std::string& token, Instant until);
  void send_settings(const judge::World& world, const judge::Pod& pod, const std::string& token,
                     const std::map<std::string, std::string>& held);
  void forget_pods(const judge::World& world);

  routers::RouterAdmin& routers_;
  const Clock& clock_;
  Mutex mutex_;
  // By the object, and the UID of the pod.
  std::map<object::Key, std::map<std::string, Told>> told_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::reconcile
