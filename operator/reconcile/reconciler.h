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

// Changes the objects of a MultimodalRouter until they match its spec, one step at a time. It
// stores nothing that it could not find out again, so a new process continues where another ended.
// Thread safety: reconcile() from several threads, but one object from one thread at a time.
class Reconciler {
 public:
  struct Options {
    // From the operator's flags.
    crd::NotedImages images;
    // Of this operator.
    std::string version;
    // The first address of a pod is an IPv6 address.
    bool is_ipv6 = false;
    Duration poll_interval = std::chrono::seconds(5);
    // Called with each verdict on an object, and with null when the object is gone. From several
    // threads.
    std::function<void(const object::Key&, const crd::Status*)> on_verdict;
  };
  // What a reconciler uses.
  struct Deps {
    client::ApiClient& api;
    const owned::Caches& caches;
    routers::RouterAdmin& routers;
    recorder::EventRecorder& events;
    const Clock& clock;
  };
  // Everything in Deps must outlive it.
  Reconciler(Options options, const Deps& deps);

  // One reconciliation. Returns when to do the next. Nothing: the object is gone. Fails with the
  // API server's last failure, after all possible steps were tried.
  client::Answer<std::optional<Duration>> reconcile(const object::Key& key);

 private:
  // The steps of a reconciliation, in order: observe, judge_spec, settle, plan, write, pushes,
  // write_pods, write_status. reconcile() only adds the case of a namespace that ends.
  client::Answer<std::optional<Duration>> look_after(const object::Key& key);
  // Drops all state about a deleted object.
  void forget(const object::Key& key);
  // Decides whether the spec is accepted. If not, the last accepted spec stays in force.
  void judge_spec(Case& now);
  // Finds the target revision, its predecessors, and the pods of selectors.
  client::Answer<Done> settle(Case& now);
  // Reads references, Secrets, pods, Deployments and the reports of routers.
  client::Answer<Done> observe(Case& now);
  // The stored specs: from memory, or from the ConfigMap after a start.
  [[nodiscard]] KeptSpecs kept_specs(const Case& now);
  // Ends a reconciliation that could not observe everything. Keeps the earlier status, with Ready
  // false.
  client::Failure unobserved(Case& now, const client::Failure& failure);
  // Remembers the failure. Returns whether status must show it.
  [[nodiscard]] bool note_failure(const Case& now, const client::Failure& failure);
  // Records the first failure of a write under the name of its object.
  static void note(Case& now, const std::string& name, const client::Answer<Done>& answer);
  // Also records the failure that ends the writes.
  [[nodiscard]] bool is_over(Case& now) const;
  // Writes all objects, then deletes unneeded ones.
  void write(Case& now);
  // Writes the objects of one revision. Adds their names to `kept`.
  void write_stack(Case& now, const judge::Stack& stack, std::set<std::string>& kept);
  // Applies one object and adds its name to `kept`.
  void put(Case& now, const object::Value& desired, std::set<std::string>& kept);
  [[nodiscard]] bool is_left_as_it_is(const Case& now, const desired::RenderInput& input,
                                      const object::Value& desired) const;
  // Keeps a roll-out in progress until all pods have the latest template.
  static void look_at_pods(Case& now);
  // Writes the readiness gates of workers and the annotations of agents.
  void write_pods(Case& now);
  client::Answer<Done> write_status(Case& now);
  // Writes the status if it has changed, and records its events.
  client::Answer<Done> put_status(const Case& now, const crd::Status& status);
  // The input of the builders for a revision.
  [[nodiscard]] desired::RenderInput render_input_of(const Case& now,
                                                     const judge::Stack& stack) const;
  [[nodiscard]] std::optional<std::string> template_of(const Case& now,
                                                       const desired::RenderInput& input) const;

  const Options options_;
  const Deps deps_;
  Observer observer_;
  owned::Applier applier_;
  Scales scales_;
  owned::OwnSecrets secrets_;
  Pushes pushes_;
  Memory memory_;
};

}  // namespace sightline::reconcile
