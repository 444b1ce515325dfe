// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// Limits who may connect to the pods of a MultimodalRouter, of all revisions. Empty if
// spec.networkPolicy.enabled is false. Outgoing connections are not restricted, because images and
// models come from anywhere.
//
// | pods              | port            | from                                                  |
// |---                |---              |---                                                    |
// | frontends         | 8000, clients   | anywhere                                              |
// | routers           | 8092, selection | frontends                                             |
// | both              | 9090, admin     | anywhere: the operator pushes there, with its token   |
// | workers           | 8000, engine    | frontends and routers                                 |
// | workers           | all             | workers, if roles are split: blocks move between them |
// | workers, agents   | 9090, admin     | anywhere if they are scraped, otherwise closed        |
// | NATS              | 4222, clients   | frontends, routers, workers and agents                |
// | NATS              | 6222, cluster   | NATS                                                  |
//
// KV events stay within a worker's pod, where policies do not apply. A user's own policy, also for
// labels of podTemplate, may allow more.
std::vector<object::Value> network_policies(const RenderInput& input, bool is_scraped);

}  // namespace sightline::desired
