// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"

#include "operator/agreement/agreement.h"
#include "operator/crd/spec.h"
#include "operator/crd/status.h"
#include "operator/desired/objects.h"
#include "operator/desired/render_input.h"
#include "operator/judge/accept.h"
#include "operator/judge/cluster_state.h"
#include "operator/judge/conditions.h"
#include "operator/kube/client/failure.h"
#include "operator/kube/object/value.h"
#include "operator/owned/own_secrets.h"
#include "operator/reconcile/specs.h"

namespace sightline::reconcile {

// One reconciliation of one object, in its present state.
struct Case {
  // The MultimodalRouter.
  object::Value object;
  desired::Owner owner;
  // The owner reference to it.
  object::Value reference;
  // The spec of the object. If it cannot be read: the last accepted one.
  crd::Spec asked;
  // Why it cannot be read.
  judge::Trouble unread;
  // Its status at the beginning.
  crd::Status before;
  // The objects that it names.
  judge::ExistingObjects found;
  agreement::Digests digests;
  owned::OwnValues own;
  KeptSpecs kept;
  judge::ClusterState cluster;
  judge::Findings findings;
  // Of pods that a Deployment makes.
  bool has_changed_pods = false;
  // The first failure of a write.
  std::optional<client::Failure> failure;
  // Writes that are left then wait for the next reconciliation.
  Instant write_until{};
};

// The inputs of the plan. Pure.
plan::RolloutTarget target_of(const judge::ClusterState& cluster);
plan::Rules rules_of(const crd::Spec& spec);

// The number of pods of each part of a revision: workers from the plan, frontends by their share.
// The frontends of an older revision end when requests find others, and its last workers after
// them. Pure.
desired::Sizes sizes_of(const Case& now, const judge::Stack& stack);

// Records the images of the operator's flags: when the object is first seen, and again when
// spec.version names this version. Pure.
void note_images(KeptSpecs& kept, const crd::Spec& asked, const crd::NotedImages& flags,
                 const std::string& version);

// Puts the target and the revisions that still have workers or frontends into the cluster state's
// stacks, the older ones first. Puts the specs to keep into `kept`. Pure.
void settle_stacks(Case& now);

// The pools of others' pods of all revisions, each once. If they differ, the newest revision's
// counts. In the order of the specs, the newest first. Pure.
std::vector<const crd::Pool*> selector_pools(const judge::ClusterState& cluster);
// Puts their pods into the cluster state, each once, for the first pool that finds it. Pure.
void add_selected(judge::ClusterState& cluster, std::vector<judge::Pod> selected);

// The revisions that have workers or frontends, but whose spec is unknown. Pure.
std::set<std::string> unknown_revisions(const judge::ClusterState& cluster);
// Those of them that have frontends, which call their routers and workers until they are gone.
// Pure.
std::set<std::string> unknown_with_frontends(const judge::ClusterState& cluster);
// Whether no other revision is needed: the target serves with everything that it should have, or
// the object is suspended. Pure.
bool is_replaced_in_full(const Case& now);
// Objects that exist, but were not found or not understood. Pure.
judge::Trouble unseen_of(const Case& now);

// What to apply to the status of the cluster state's own pods: gates of workers, and annotations of
// agents, which the API server accepts there too. `when` is a timestamp. Pure.
std::vector<object::Value> pod_patches(const judge::ClusterState& cluster, const std::string& when);

}  // namespace sightline::reconcile
