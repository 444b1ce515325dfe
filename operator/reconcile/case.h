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
#include "operator/desired/scene.h"
#include "operator/judge/accept.h"
#include "operator/judge/conditions.h"
#include "operator/judge/world.h"
#include "operator/kube/client/failure.h"
#include "operator/kube/object/value.h"
#include "operator/owned/own_secrets.h"
#include "operator/reconcile/specs.h"

namespace sightline::reconcile {

// One reconciliation of one object, as far as it is.
struct Case {
  object::Value object;  // the MultimodalRouter
  desired::Owner owner;
  object::Value reference;  // of it, as owner
  crd::Spec asked;          // its spec; where that is not understood, what was accepted last
  judge::Trouble unread;    // why it is not understood
  crd::Status before;       // its status, as it was found
  judge::Found found;       // what it names
  agreement::Digests digests;
  owned::OwnValues own;
  KeptSpecs kept;
  judge::World world;
  judge::Findings findings;
  bool has_changed_pods = false;           // of what a Deployment makes of them
  std::optional<client::Failure> failure;  // the first one of a write
  Instant write_until{};                   // what is left then is written the next time
};

// The plan's inputs. Pure.
plan::Target target_of(const judge::World& world);
plan::Rules rules_of(const crd::Spec& spec);

// How many pods each part of a revision is to have: workers by the plan, frontends by their share.
// Of an older one frontends end when requests find others, and its last workers after them. Pure.
desired::Sizes sizes_of(const Case& now, const judge::Stack& stack);

// What the operator's flags say of images, noted on the object when it is first seen and again when
// spec.version asks for this version. Pure.
void note_images(KeptSpecs& kept, const crd::Spec& asked, const crd::NotedImages& flags,
                 const std::string& version);

// Puts the target and the revisions that still have workers or frontends into the world's stacks,
// the older ones first, and what is to be kept of specs into `kept`. Pure.
void settle_stacks(Case& now);

// Pools of somebody else's pods of all revisions, each once: the newest revision's, where they
// differ; in the order of the specs, the newest first. Pure.
std::vector<const crd::Pool*> selector_pools(const judge::World& world);
// Puts their pods into the world, each once: of the first pool that finds it. Pure.
void add_selected(judge::World& world, std::vector<judge::Pod> selected);

// Revisions that have workers or frontends, and whose spec is not known any more. Pure.
std::set<std::string> unknown_revisions(const judge::World& world);
// Of them those that have frontends, which ask their routers and workers until they are gone. Pure.
std::set<std::string> unknown_with_frontends(const judge::World& world);
// Whether the target serves with all that it is to have: it needs nothing of others. Pure.
bool is_replaced_in_full(const Case& now);
// What is there and is not found, or not understood. Pure.
judge::Trouble unseen_of(const Case& now);

// What is to be applied to statuses of the world's own pods: gates of workers, and annotations of
// agents, which the API server takes there too. `when` is a timestamp. Pure.
std::vector<object::Value> pod_patches(const judge::World& world, const std::string& when);

}  // namespace sightline::reconcile
