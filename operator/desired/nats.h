// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/nats_config.h"
#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// A managed NATS: one server, or three that stand in for each other, for all revisions. Nothing is
// kept on disks: what is lost is asked for again. A ConfigMap, a Service for clients and one that
// stands for each server, a StatefulSet and, of three, a PodDisruptionBudget. Empty for an external
// NATS. A server of three sends its clients to the others before it ends; a single one ends at
// once, which lets its clients come back the sooner.
std::vector<object::Value> nats_objects(const Scene& scene, const NatsKeys& keys);

}  // namespace sightline::desired
