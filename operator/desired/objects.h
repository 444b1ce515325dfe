// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/agents.h"
#include "operator/desired/nats_config.h"
#include "operator/desired/scene.h"
#include "operator/desired/settings.h"
#include "operator/kube/object/value.h"

// All objects of a MultimodalRouter, to be written by server-side apply in this order: what others
// refer to comes first. Each has kind, apiVersion, labels and the owner, and only fields that are
// ours; of equal values the same text. Secrets are not among them (secrets.h), and a
// MultimodalRouterPool must be there before it is applied (pools.h).
namespace sightline::desired {

// What is observed beside the spec.
struct Surroundings {
  NatsKeys nats;                  // public keys of the Secrets; unused with an external NATS
  bool has_pod_monitors = false;  // the API server knows the kind
};

// Of all revisions; the scene is that of the accepted spec.
std::vector<object::Value> shared_objects(const Scene& scene, const Surroundings& around);

// Of one revision; its ConfigMap NAME-REVISION, to which others belong, is the first. workers: as
// its routers have them now. foreign: pods that its pools select. Suspended, the sizes are to be
// zero.
std::vector<object::Value> revision_objects(const Scene& scene, const Sizes& sizes,
                                            const std::vector<WorkerFields>& workers,
                                            const std::vector<ForeignPod>& foreign);

}  // namespace sightline::desired
