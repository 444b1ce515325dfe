// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/recorder/event_recorder.h"
#include "operator/owned/applier.h"
#include "operator/owned/caches.h"
#include "operator/owned/own_secrets.h"
#include "operator/reconcile/case.h"
#include "operator/reconcile/memory.h"
#include "operator/reconcile/observer.h"
#include "operator/reconcile/pushes.h"
#include "operator/reconcile/scales.h"
#include "operator/routers/router_admin.h"

namespace sightline::reconcile {

// Makes what is true of a MultimodalRouter what its spec asks for, a step at a time. It remembers
// nothing that it could not find out again: whatever ends it, the next one goes on.
// Thread safety: reconcile() from several threads, for one object from one at a time.
class Reconciler {
 public:
  struct Options {
    crd::NotedImages images;  // of the flags
    std::string version;      // of this operator
    bool is_ipv6 = false;     // the first address of a pod is an IPv6 address
    Duration poll_interval = std::chrono::seconds(5);
    // Told of each verdict on an object; without one, that it is gone. From several threads.
    std::function<void(const object::Key&, const crd::Status*)> on_verdict;
  };
  struct Around {
    client::ApiClient& api;
    const owned::Caches& caches;
    routers::RouterAdmin& routers;
    recorder::EventRecorder& events;
    const Clock& clock;
  };
  // All of Around must outlive it.
  Reconciler(Options options, const Around& around);

  // When to look again; nothing: the object is gone. Fails with what the API server said last,
  // after all was tried that could be.
  client::Answer<std::optional<Duration>> reconcile(const object::Key& key);

 private:
  client::Answer<std::optional<Duration>> look_after(const object::Key& key);
  void forget(const object::Key& key);
  void judge_spec(Case& now);
  client::Answer<Done> settle(Case& now);
  client::Answer<Done> observe(Case& now);
  [[nodiscard]] KeptSpecs kept_specs(const Case& now);
  client::Failure unobserved(Case& now, const client::Failure& failure);
  [[nodiscard]] bool is_told(const Case& now, const client::Failure& failure);
  static void note(Case& now, const std::string& name, const client::Answer<Done>& answer);
  [[nodiscard]] bool is_over(Case& now) const;
  void write(Case& now);
  void write_stack(Case& now, const judge::Stack& stack, std::set<std::string>& kept);
  void put(Case& now, const object::Value& desired, std::set<std::string>& kept);
  [[nodiscard]] bool is_left_as_it_is(const Case& now, const desired::Scene& scene,
                                      const object::Value& desired) const;
  static void look_at_pods(Case& now);
  void write_pods(Case& now);
  client::Answer<Done> write_status(Case& now);
  client::Answer<Done> put_status(const Case& now, const crd::Status& status);
  [[nodiscard]] desired::Scene scene_of(const Case& now, const judge::Stack& stack) const;
  [[nodiscard]] std::optional<std::string> template_of(const Case& now,
                                                       const desired::Scene& scene) const;

  const Options options_;
  const Around around_;
  Observer observer_;
  owned::Applier applier_;
  Scales scales_;
  owned::OwnSecrets secrets_;
  Pushes pushes_;
  Memory memory_;
};

}  // namespace sightline::reconcile
