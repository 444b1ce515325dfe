// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/pushes.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "common/base/log.h"

#include "operator/desired/object_names.h"
#include "operator/desired/program_settings.h"
#include "operator/judge/list_pushes.h"

namespace sightline::reconcile {

using object::Key;
using object::Value;

namespace {

Key key_of(const judge::ClusterState& cluster) { return {cluster.name_space, cluster.name}; }

const judge::Stack* stack_of(const judge::ClusterState& cluster, const judge::Pod& pod) {
  const auto found =
      std::find_if(cluster.stacks.begin(), cluster.stacks.end(),
                   [&](const judge::Stack& one) { return one.revision == pod.revision; });
  return found == cluster.stacks.end() ? nullptr : &*found;
}

Value settings_body(const judge::Stack& stack) {
  desired::RenderInput input;
  input.spec = stack.spec;
  Value body = Value::object();
  for (const auto& [name, value] : desired::live_settings(input)) {
    body.set({"settings", name}, value);
  }
  return body;
}

}  // namespace

void Pushes::send(const judge::ClusterState& cluster, const std::string& token, Instant until) {
  send_lists(cluster, token, until);
  for (const judge::RouterReport& router : cluster.routers) {
    if (clock_.now() >= until) break;
    const auto* pod = router.problem.empty() ? judge::pod_named(cluster, router.pod) : nullptr;
    if (pod != nullptr) send_settings(cluster, *pod, token, router.settings);
    // Frontends are asked here, because only routers have reports in the cluster state.
  }
  for (const judge::Pod& pod : cluster.pods) {
    if (clock_.now() >= until) break;
    // An unready process serves no requests. It gets its settings when it is ready.
    const bool is_serving = pod.component == desired::kFrontend && pod.is_ready && !pod.is_ending;
    if (!is_serving || pod.is_over || pod.ip.empty()) continue;
    const auto held = routers_.settings({pod.ip, token});
    if (held.ok()) send_settings(cluster, pod, token, *held);
  }
  forget_pods(cluster);
}

void Pushes::send_lists(const judge::ClusterState& cluster, const std::string& token,
                        Instant until) {
  for (const judge::ListPush& one : judge::lists_to_push(cluster)) {
    const judge::Pod* pod = judge::pod_named(cluster, one.pod);
    if (pod == nullptr || clock_.now() >= until) continue;
    const auto pushed = routers_.put({pod->ip, token}, "/v1/workers", one.body);
    if (pushed.ok()) continue;
    log(LogLevel::Warn, "cannot push the worker list to a router",
        {{"router", pod->name}, {"problem", pushed.error().message}});
  }
}

void Pushes::send_settings(const judge::ClusterState& cluster, const judge::Pod& pod,
                           const std::string& token,
                           const std::map<std::string, std::string>& held) {
  const judge::Stack* stack = stack_of(cluster, pod);
  if (stack == nullptr) return;
  const Value body = settings_body(*stack);
  const std::string wanted = body.to_text();
  {
    const MutexLock lock(mutex_);
    PushState& told = told_[key_of(cluster)][pod.uid];
    // What the process reports after a push counts as its form of the settings.
    if (told.settings == wanted && told.read_back.empty()) told.read_back = held;
    // A restarted process reports other settings, so it gets them again.
    if (told.settings == wanted && told.read_back == held) return;
  }
  // Outside of the lock, because a call may take seconds.
  const auto pushed = routers_.put({pod.ip, token}, "/v1/settings", body);
  if (!pushed.ok()) {
    log(LogLevel::Warn, "cannot push the settings to a process",
        {{"pod", pod.name}, {"problem", pushed.error().message}});
    return;
  }
  const MutexLock lock(mutex_);
  told_[key_of(cluster)][pod.uid] = {.settings = wanted, .read_back = {}};
}

void Pushes::forget_pods(const judge::ClusterState& cluster) {
  std::set<std::string_view> there;
  for (const judge::Pod& pod : cluster.pods) there.insert(pod.uid);
  const MutexLock lock(mutex_);
  const auto told = told_.find(key_of(cluster));
  if (told == told_.end()) return;
  std::erase_if(told->second, [&](const auto& one) { return !there.contains(one.first); });
}

void Pushes::forget(const Key& router) {
  const MutexLock lock(mutex_);
  told_.erase(router);
}

}  // namespace sightline::reconcile
