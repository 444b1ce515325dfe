// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/nats_config.h"
#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// The objects of a managed NATS: one server, or three that replace each other, for all revisions.
// It stores nothing on disks, because programs request lost data again. A ConfigMap, a Service for
// clients, a Service with one name for each server, a StatefulSet and, for three servers, a
// PodDisruptionBudget. Empty for an external NATS. One of three servers sends its clients to the
// others before it ends. A single server ends immediately, which lets clients return sooner.
std::vector<object::Value> nats_objects(const RenderInput& input, const NatsKeys& keys);

}  // namespace sightline::desired
