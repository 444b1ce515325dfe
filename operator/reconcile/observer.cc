// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/observer.h"

#include <set>
#include <utility>

#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"

namespace sightline::reconcile {

using client::Answer;
using client::Reason;
using object::Value;

namespace {

// The size of a page of pods that a pool selects.
constexpr std::size_t kPageObjects = 500;

std::string selector_text(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : ",") + name + "=" + value;
  return text;
}

// The object, or nothing if it does not exist.
Answer<std::optional<Value>> get_if_there(client::ApiClient& api, const object::Resource& resource,
                                          const object::Key& key) {
  auto object = api.get(resource, key);
  if (object.ok()) return std::optional<Value>(std::move(*object));
  if (failed(object, Reason::NotFound)) return std::optional<Value>();
  return std::move(object).error();
}

// A pod of a MultimodalRouter. Selectors are only for pods of others.
bool is_ours(const Value& pod) {
  return !object::label_of(pod, desired::kRouterLabel).empty() &&
         !object::label_of(pod, desired::kComponentLabel).empty();
}

judge::Pod selected_pod(const Value& item, const std::string& pool) {
  judge::Pod pod = judge::pod_of(item);
  // Labels of foreign pods may equal ours, but they have no meaning here.
  pod.component.clear();
  pod.revision.clear();
  pod.pool = pool;
  return pod;
}

client::Failure too_many(const std::string& pool) {
  client::Failure made;
  made.reason = Reason::Invalid;
  made.message = "pool " + pool + ": its selector finds more than " +
                 std::to_string(Observer::kSelectedMax) + " pods. Make its labels narrower";
  return made;
}

}  // namespace

std::vector<judge::Pod> Observer::pods(const object::Key& router, std::string_view uid) const {
  // Labels alone are not enough: a user may copy them. Only pods of our own controllers count.
  std::set<std::string, std::less<>> controllers;
  for (const auto& deployment : caches_.children(owned::deployments_resource(), router, uid)) {
    const std::string_view owner = object::uid_of(*deployment);
    const auto sets = caches_.children(owned::replica_sets_resource(), router, owner);
    for (const auto& set : sets) controllers.emplace(object::uid_of(*set));
  }
  for (const auto& set : caches_.children(owned::stateful_sets_resource(), router, uid)) {
    controllers.emplace(object::uid_of(*set));
  }
  std::vector<judge::Pod> pods;
  for (const auto& pod : caches_.pods_of(router)) {
    if (controllers.contains(object::controller_uid_of(*pod))) pods.push_back(judge::pod_of(*pod));
  }
  return pods;
}

std::vector<judge::Deployment> Observer::deployments(const object::Key& router,
                                                     std::string_view uid) const {
  std::vector<judge::Deployment> deployments;
  for (const auto& deployment : caches_.children(owned::deployments_resource(), router, uid)) {
    deployments.push_back(judge::deployment_of(*deployment));
  }
  return deployments;
}

std::optional<std::int64_t> Observer::nats_ready(const object::Key& router,
                                                 std::string_view uid) const {
  const auto sets = caches_.children(owned::stateful_sets_resource(), router, uid);
  if (sets.empty()) return std::nullopt;
  return sets.front()->at({"status", "readyReplicas"}).integer().value_or(0);
}

std::map<std::string, std::int64_t> Observer::scales(std::string_view uid) const {
  std::map<std::string, std::int64_t> scales;
  for (const auto& scale : caches_.owned(owned::scales_resource(), uid)) {
    const auto replicas = scale->at({"spec", "replicas"}).integer();
    if (replicas) scales[std::string(scale->at({"spec", "pool"}).text())] = *replicas;
  }
  return scales;
}

Answer<std::vector<judge::Pod>> Observer::selected(const std::string& name_space,
                                                   const crd::Pool& pool) {
  client::ListOptions options;
  options.of = {.name_space = name_space, .labels = selector_text(pool.selector->match_labels)};
  options.limit = kPageObjects;
  std::vector<judge::Pod> pods;
  do {
    // Releases each page before it reads the next: labels may select any number of pods.
    const client::List page = SL_TRY(api_.list(owned::pods_resource(), options));
    for (const Value& item : page.items) {
      if (!is_ours(item)) pods.push_back(selected_pod(item, pool.name));
    }
    // Checked after each page, so labels that select all pods do not fill the memory.
    if (pods.size() > kSelectedMax) return too_many(pool.name);
    options.continue_from = page.continue_from;
  } while (!options.continue_from.empty());
  return pods;
}

Answer<bool> Observer::has_key(const std::string& name_space, const crd::SecretRef& secret) {
  const object::Key key{name_space, secret.name};
  const auto listed = caches_.find(owned::secrets_resource(), key);
  // Without the right to list Secrets, each check reads the Secret.
  if (listed != nullptr) {
    const MutexLock lock(mutex_);
    const auto read = secrets_.find(key);
    const bool is_known =
        read != secrets_.end() && read->second.version == object::resource_version_of(*listed);
    if (is_known) return read->second.keys.contains(secret.key);
  }
  const auto object = SL_TRY(get_if_there(api_, owned::secrets_resource(), key));
  const MutexLock lock(mutex_);
  if (!object) {
    secrets_.erase(key);
    return false;
  }
  Read& read = secrets_[key];
  read = {.version = std::string(object::resource_version_of(*object)), .keys = {}};
  for (const auto& [name, value] : object->at({"data"}).members()) read.keys.insert(name);
  return read.keys.contains(secret.key);
}

Answer<bool> Observer::has_claim(const object::Key& claim) {
  const Instant now = clock_.now();
  {
    const MutexLock lock(mutex_);
    // Only an existing claim is remembered. A missing one is looked for again.
    const auto seen = claims_.find(claim);
    if (seen != claims_.end() && now - seen->second < kClaimAfter) return true;
  }
  const auto object = SL_TRY(get_if_there(api_, owned::claims_resource(), claim));
  const MutexLock lock(mutex_);
  if (!object) {
    claims_.erase(claim);
    return false;
  }
  claims_[claim] = now;
  return true;
}

Answer<judge::ExistingObjects> Observer::references(const std::string& name_space,
                                                    const crd::Spec& spec) {
  const judge::References wanted = judge::references_of(spec);
  judge::ExistingObjects found;
  for (const crd::SecretRef& secret : wanted.secrets) {
    if (SL_TRY(has_key(name_space, secret))) found.secrets.insert(secret.name + "/" + secret.key);
  }
  if (wanted.claim) found.has_claim = SL_TRY(has_claim({name_space, *wanted.claim}));
  if (wanted.chat_template) {
    const auto object = SL_TRY(get_if_there(api_, owned::config_maps_resource(),
                                            {name_space, wanted.chat_template->config_map}));
    const Value& text = object ? object->at({"data", wanted.chat_template->key}) : Value();
    if (text.is_string()) found.chat_template = std::string(text.text());
  }
  return found;
}

std::vector<judge::RouterReport> Observer::reports(const std::vector<judge::Pod>& pods,
                                                   const std::string& token) {
  const Instant until = clock_.now() + kAskMax;
  std::vector<judge::RouterReport> reports;
  for (const judge::Pod& pod : pods) {
    // A terminating router does not vote.
    if (pod.component != desired::kRouterComponent || pod.is_ending || pod.is_over) continue;
    if (pod.ip.empty()) {
      reports.push_back(judge::unreached(pod, "its pod has no address yet"));
      continue;
    }
    // Routers are asked one after the other, so silent ones could take all the time.
    if (clock_.now() >= until) {
      reports.push_back(
          judge::unreached(pod, "not asked, because other routers took all of the time"));
      continue;
    }
    const auto answers = routers_.ask({pod.ip, token});
    reports.push_back(answers.ok() ? judge::report_of(pod, *answers)
                                   : judge::unreached(pod, answers.error().message));
  }
  return reports;
}

}  // namespace sightline::reconcile
