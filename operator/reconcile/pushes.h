// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/judge/cluster_state.h"
#include "operator/kube/object/resource.h"
#include "operator/routers/router_admin.h"

namespace sightline::reconcile {

// Pushes changes to running routers and frontends: lists of workers and settings. Each is sent
// once, and again if the process does not have it any more.
// Thread safety: all methods from any thread, but one MultimodalRouter from one thread at a time.
class Pushes {
 public:
  // Both must outlive it.
  Pushes(routers::RouterAdmin& routers, const Clock& clock) : routers_(routers), clock_(clock) {}

  // Sends all due pushes. A failed one, or one left at `until`, is sent the next time.
  void send(const judge::ClusterState& cluster, const std::string& token, Instant until);
  // Drops the state of a deleted object.
  void forget(const object::Key& router);

 private:
  // The settings that a process was sent, and what it then reported.
  struct PushState {
    std::string settings;
    std::map<std::string, std::string> read_back;
  };

  // Sends lists to routers that have another one.
  void send_lists(const judge::ClusterState& cluster, const std::string& token, Instant until);
  // Sends settings to a process, unless it has them.
  void send_settings(const judge::ClusterState& cluster, const judge::Pod& pod,
                     const std::string& token, const std::map<std::string, std::string>& held);
  // Drops the state of pods that are gone.
  void forget_pods(const judge::ClusterState& cluster);

  routers::RouterAdmin& routers_;
  const Clock& clock_;
  Mutex mutex_;
  // By object, and by the UID of the pod.
  std::map<object::Key, std::map<std::string, PushState>> told_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::reconcile
