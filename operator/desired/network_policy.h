// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// Who may reach the pods of a MultimodalRouter, of all revisions; empty where
// spec.networkPolicy.enabled is false. What pods reach themselves is not restricted, since images
// and models are fetched from anywhere.
//
// | pods              | port            | from                                                  |
// |---                |---              |---                                                    |
// | frontends         | 8000, clients   | anywhere                                              |
// | routers           | 8092, selection | frontends                                             |
// | both              | 9090, admin     | anywhere: the operator pushes there, with its token   |
// | workers           | 8000, engine    | frontends and routers                                 |
// | workers           | all             | workers, where roles are split: blocks are passed on  |
// | workers, agents   | 9090, admin     | anywhere, if they are scraped, else nobody            |
// | NATS              | 4222, clients   | frontends, routers, workers and agents                |
// | NATS              | 6222, cluster   | NATS                                                  |
//
// Events pass within a worker's pod, where no policy counts. A user's own policy, and one of
// podTemplate's labels, may allow more.
std::vector<object::Value> network_policies(const Scene& scene, bool is_scraped);

}  // namespace sightline::desired
