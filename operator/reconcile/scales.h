// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "operator/crd/spec.h"
#include "operator/desired/render_input.h"
#include "operator/judge/cluster_state.h"
#include "operator/kube/client/api_client.h"
#include "operator/owned/caches.h"

namespace sightline::reconcile {

// The MultimodalRouterPools of pools with autoscaling, in which an autoscaler sets the number of
// workers.
// Thread safety: all methods from any thread.
class Scales {
 public:
  // Both must outlive it.
  Scales(client::ApiClient& api, const owned::Caches& caches) : api_(api), caches_(caches) {}

  // Creates the object. Sets its replicas once, and again only if the pool does not allow them any
  // more.
  client::Answer<Done> make(const judge::ClusterState& cluster, const desired::RenderInput& input,
                            const crd::Pool& pool);
  // Writes what autoscalers read from it: how many workers exist, and which pods they are.
  client::Answer<Done> tell(const judge::ClusterState& cluster, const desired::Owner& owner,
                            const crd::Pool& pool);

 private:
  client::ApiClient& api_;
  const owned::Caches& caches_;
};

}  // namespace sightline::reconcile
