// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/foreign_agents.h"
#include "operator/desired/nats_config.h"
#include "operator/desired/program_settings.h"
#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// All objects of a MultimodalRouter, to be written with server-side apply in this order: an object
// comes after those it refers to. Each has kind, apiVersion, labels, the owner and only our own
// fields. Equal values give equal texts. Secrets are not included (secrets.h). A
// MultimodalRouterPool must exist before it is applied (pools.h).
namespace sightline::desired {

// Observations besides the spec.
struct ClusterFacts {
  // The public keys in the Secrets. Unused with an external NATS.
  NatsKeys nats;
  // The API server knows this kind.
  bool has_pod_monitors = false;
};

// The objects that all revisions share. `input` has the accepted spec.
std::vector<object::Value> shared_objects(const RenderInput& input, const ClusterFacts& deps);

// The objects of one revision. The first is its ConfigMap NAME-REVISION, which owns others.
// workers: as its routers have them now. foreign: the pods that its pools select. If the object is
// suspended, `sizes` must be zero.
std::vector<object::Value> revision_objects(const RenderInput& input, const Sizes& sizes,
                                            const std::vector<WorkerFields>& workers,
                                            const std::vector<ForeignPod>& foreign);

}  // namespace sightline::desired
