// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/operator/reconcile/fake_cluster.h"

#include <algorithm>
#include <utility>

#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"

namespace sightline::reconcile {

using object::Value;

namespace {

std::string name_of(const Value& object) { return object::key_of(object).name; }

std::string label(const Value& object, std::string_view name) {
  return std::string(object::label_of(object, name));
}

bool has_condition(const Value& pod, std::string_view type) {
  for (const Value& condition : pod.at({"status", "conditions"}).items()) {
    if (condition["type"].text() == type) return condition["status"].text() == "True";
  }
  return false;
}

void set_condition(Value& pod, std::string_view type, bool is_true) {
  Value::Items conditions = pod.at({"status", "conditions"}).items();
  std::erase_if(conditions, [&](const Value& one) { return one["type"].text() == type; });
  Value condition = Value::object();
  condition.member("type") = type;
  condition.member("status") = is_true ? "True" : "False";
  conditions.push_back(condition);
  pod.set({"status", "conditions"}, Value(std::move(conditions)));
}

}  // namespace

void FakeCluster::step() {
  for (Value& pod : server_.objects(owned::pods_resource())) {
    if (!object::is_being_deleted(pod)) continue;
    pod.erase({"metadata", "finalizers"});
    server_.put(owned::pods_resource(), pod);
    static_cast<void>(server_.remove(owned::pods_resource(), object::key_of(pod), {}));
  }
  server_.collect_garbage();
  for (const Value& deployment : server_.objects(owned::deployments_resource())) {
    if (!are_stopped_) run(deployment);
  }
  std::erase_if(routed_, [&](const std::string& one) { return !has_routable(one); });
  for (const Value& pod : pods(std::string(desired::kWorker))) {
    const std::string revision = label(pod, desired::kRevisionLabel);
    if (has_routable(revision)) routed_.insert(revision);
  }
  for (Value& set : server_.objects(owned::stateful_sets_resource())) {
    const Value wanted = set.at({"spec", "replicas"});
    if (set.at({"status", "readyReplicas"}) == wanted) continue;
    set.set({"status", "readyReplicas"}, wanted);
    server_.put(owned::stateful_sets_resource(), set);
  }
}

void FakeCluster::run(const Value& deployment) {
  const object::Key key{object::key_of(deployment).name_space, name_of(deployment) + "-set"};
  auto set = server_.find(owned::replica_sets_resource(), key);
  if (!set) {
    Value made = Value::object();
    made.set({"metadata", "name"}, key.name);
    made.set({"metadata", "namespace"}, key.name_space);
    made.set({"metadata", "labels"}, deployment.at({"spec", "template", "metadata", "labels"}));
    Value owner = deployment;
    object::name_kind(owner, owned::deployments_resource());
    made.set({"metadata", "ownerReferences"}, Value::array({object::controller_reference(owner)}));
    server_.put(owned::replica_sets_resource(), made);
    set = server_.find(owned::replica_sets_resource(), key);
  }
  std::vector<Value> pods;
  for (const Value& pod : server_.objects(owned::pods_resource())) {
    const bool is_its = object::controller_uid_of(pod) == object::uid_of(*set);
    if (is_its && !object::is_being_deleted(pod)) pods.push_back(pod);
  }
  // Pods that are not ready go first, as with Deployments.
  std::stable_sort(pods.begin(), pods.end(), [](const Value& left, const Value& right) {
    return has_condition(left, "Ready") > has_condition(right, "Ready");
  });
  const auto wanted =
      static_cast<std::size_t>(deployment.at({"spec", "replicas"}).integer().value_or(1));
  for (std::size_t i = pods.size(); i < wanted; ++i) start_pod(deployment, *set);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (i < wanted) {
      become(pods[i], deployment);
    } else {
      static_cast<void>(server_.remove(owned::pods_resource(), object::key_of(pods[i]), {}));
    }
  }
  Value seen = deployment;
  for (const std::string_view count : {"replicas", "updatedReplicas"}) {
    seen.set({"status", count}, static_cast<std::int64_t>(std::min(pods.size(), wanted)));
  }
  seen.set({"status", "observedGeneration"}, seen.at({"metadata", "generation"}));
  if (seen["status"] != deployment["status"]) server_.put(owned::deployments_resource(), seen);
}

void FakeCluster::start_pod(const Value& deployment, const Value& set) {
  const std::size_t number = ++started_;
  Value pod = Value::object();
  pod.set({"metadata", "name"}, name_of(deployment) + "-" + std::to_string(number));
  pod.set({"metadata", "namespace"}, object::key_of(deployment).name_space);
  pod.set({"metadata", "labels"}, deployment.at({"spec", "template", "metadata", "labels"}));
  Value owner = set;
  object::name_kind(owner, owned::replica_sets_resource());
  pod.set({"metadata", "ownerReferences"}, Value::array({object::controller_reference(owner)}));
  // The kubelet's finalizer keeps a terminating pod until its containers have ended.
  pod.set({"metadata", "finalizers"}, Value::array({"test/kubelet"}));
  pod.set({"status", "phase"}, "Running");
  pod.set({"status", "podIP"},
          "10.0." + std::to_string(number / 250) + "." + std::to_string(number % 250 + 1));
  server_.put(owned::pods_resource(), pod);
}

void FakeCluster::add_foreign(const std::string& pod, const std::string& app) {
  const std::size_t number = ++started_;
  Value made = Value::object();
  made.set({"metadata", "name"}, pod);
  made.set({"metadata", "namespace"}, "prod");
  made.set({"metadata", "labels", "app"}, app);
  made.set({"status", "phase"}, "Running");
  made.set({"status", "podIP"}, "10.1.0." + std::to_string(number));
  set_condition(made, "Ready", true);
  server_.put(owned::pods_resource(), made);
}

// Routers are ready with a list, workers with their gate. Frontends are ready with a worker of
// their revision, which their next probe shows.
void FakeCluster::become(Value pod, const Value& deployment) {
  const std::string component = label(deployment, desired::kComponentLabel);
  bool is_ready = true;
  if (component == desired::kRouterComponent) {
    const std::lock_guard lock(mutex_);
    is_ready = !routers_[name_of(pod)].list.is_null();
  } else if (component == desired::kWorker) {
    is_ready = has_condition(pod, desired::kRoutableGate);
  } else if (component == desired::kFrontend) {
    const std::string revision = label(deployment, desired::kRevisionLabel);
    is_ready = (routed_.contains(revision) && has_routable(revision)) || has_foreign(revision);
  }
  set_condition(pod, "Ready", is_ready);
  const auto there = server_.find(owned::pods_resource(), object::key_of(pod));
  if (there && pod != *there) server_.put(owned::pods_resource(), pod);
}

bool FakeCluster::serves(const Value& pod) {
  return has_condition(pod, "Ready") && !object::is_being_deleted(pod);
}

std::vector<Value> FakeCluster::pods(const std::string& component,
                                     const std::string& revision) const {
  std::vector<Value> found;
  for (const Value& pod : server_.objects(owned::pods_resource())) {
    const bool is_it = label(pod, desired::kComponentLabel) == component &&
                       (revision.empty() || label(pod, desired::kRevisionLabel) == revision);
    if (is_it) found.push_back(pod);
  }
  return found;
}

bool FakeCluster::has_routable(const std::string& revision) const {
  const auto workers = pods(std::string(desired::kWorker), revision);
  return std::any_of(workers.begin(), workers.end(), [](const Value& pod) {
    return has_condition(pod, desired::kRoutableGate) && !object::is_being_deleted(pod);
  });
}

// Whether a router of the revision admits a worker on its list from outside.
bool FakeCluster::has_foreign(const std::string& revision) const {
  const auto routers = pods(std::string(desired::kRouterComponent), revision);
  const auto own = pods(std::string(desired::kWorker));
  const std::lock_guard lock(mutex_);
  for (const Value& pod : routers) {
    const auto router = routers_.find(name_of(pod));
    if (router == routers_.end()) continue;
    for (const Value& worker : router->second.list["workers"].items()) {
      const std::string name(worker["name"].text());
      const bool is_own = std::any_of(own.begin(), own.end(),
                                      [&](const Value& one) { return name_of(one) == name; });
      if (!is_own && !lies_.contains(name)) return true;
    }
  }
  return false;
}

std::size_t FakeCluster::serving() const {
  const auto frontends = pods(std::string(desired::kFrontend));
  return static_cast<std::size_t>(
      std::count_if(frontends.begin(), frontends.end(), [](const Value& pod) {
        return has_condition(pod, "Ready") && !object::is_being_deleted(pod);
      }));
}

std::size_t FakeCluster::routable() const {
  const auto workers = pods(std::string(desired::kWorker));
  return static_cast<std::size_t>(
      std::count_if(workers.begin(), workers.end(), [](const Value& pod) {
        return has_condition(pod, desired::kRoutableGate) && !object::is_being_deleted(pod);
      }));
}

void FakeCluster::restart_router(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  routers_[pod] = {};
}

void FakeCluster::silence(const std::string& pod, bool is_silent) {
  const std::lock_guard lock(mutex_);
  routers_[pod].is_silent = is_silent;
}

void FakeCluster::lie(const std::string& worker, std::int64_t block_size) {
  const std::lock_guard lock(mutex_);
  lies_[worker] = block_size;
}

std::size_t FakeCluster::puts(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = puts_.find(path);
  return found == puts_.end() ? 0 : found->second;
}

std::map<std::string, std::string> FakeCluster::settings(const std::string& pod) const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> settings;
  const auto router = routers_.find(pod);
  if (router == routers_.end()) return settings;
  for (const auto& [name, value] : router->second.settings.members()) {
    settings[name] = value.text();
  }
  return settings;
}

std::optional<Value> FakeCluster::pod_at(const std::string& ip) const {
  for (const Value& pod : server_.objects(owned::pods_resource())) {
    if (pod.at({"status", "podIP"}).text() == ip) return pod;
  }
  return std::nullopt;
}

std::optional<Value> FakeCluster::answering_at(const std::string& ip) const {
  const auto pod = pod_at(ip);
  if (!pod) return std::nullopt;
  {
    const std::lock_guard lock(mutex_);
    const auto router = routers_.find(name_of(*pod));
    if (router == routers_.end() || !router->second.is_silent) return pod;
  }
  on_silence();
  return std::nullopt;
}

Result<std::map<std::string, std::string>> FakeCluster::settings(const routers::Address& process) {
  const auto pod = answering_at(process.host);
  if (!pod) return worker_error(ErrorCode::Unavailable, "no answer", true);
  return settings(name_of(*pod));
}

Result<judge::RouterAnswers> FakeCluster::ask(const routers::Address& router) {
  const auto pod = answering_at(router.host);
  if (!pod) return worker_error(ErrorCode::Unavailable, "no answer", true);
  const std::lock_guard lock(mutex_);
  const Router& state = routers_[name_of(*pod)];
  judge::RouterAnswers answers;
  answers.workers = Value::array();
  for (const Value& worker : state.list["workers"].items()) {
    const auto lie = lies_.find(std::string(worker["name"].text()));
    Value report = Value::object();
    report.member("name") = worker["name"];
    report.member("state") = lie == lies_.end() ? "ready" : "excluded";
    report.member("ready") = lie == lies_.end();
    if (lie != lies_.end()) report.member("block_size") = lie->second;
    answers.workers.append(report);
  }
  answers.list = Value::object();
  answers.list.member("generation") = state.list["generation"];
  answers.list.member("pushed") = state.list;
  answers.settings = Value::array();
  for (const auto& [name, value] : state.settings.members()) {
    Value row = Value::object();
    row.member("name") = name;
    row.member("value") = value;
    row.member("origin") = "push";
    answers.settings.append(row);
  }
  answers.replicas = Value::object();
  return answers;
}

Result<Done> FakeCluster::put(const routers::Address& router, const std::string& path,
                              const Value& body) {
  const auto pod = answering_at(router.host);
  if (!pod) return worker_error(ErrorCode::Unavailable, "no answer", true);
  const std::lock_guard lock(mutex_);
  ++puts_[path];
  Router& state = routers_[name_of(*pod)];
  if (path == "/v1/settings") {
    state.settings = body["settings"];
    return Done{};
  }
  const auto held = state.list["generation"].integer().value_or(0);
  if (body["generation"].integer().value_or(0) < held) {
    return worker_error(ErrorCode::Unavailable, "409: an older list", false);
  }
  if (body["revision"].text() != label(*pod, desired::kRevisionLabel)) {
    return worker_error(ErrorCode::Unavailable, "409: another revision", false);
  }
  state.list = body;
  return Done{};
}

}  // namespace sightline::reconcile
