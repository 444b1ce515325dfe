// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "operator/kube/object/resource.h"

// The resources that the operator reads and writes.
namespace sightline::owned {

// MultimodalRouter.
const object::Resource& routers_resource();
// MultimodalRouterPool.
const object::Resource& scales_resource();
const object::Resource& pods_resource();
// ReplicaSets of our Deployments, which the operator only reads.
const object::Resource& replica_sets_resource();
const object::Resource& secrets_resource();
// PersistentVolumeClaims of users, which the operator only reads.
const object::Resource& claims_resource();
const object::Resource& pod_monitors_resource();
const object::Resource& config_maps_resource();
const object::Resource& deployments_resource();
const object::Resource& stateful_sets_resource();

// The resources that are rendered for a MultimodalRouter and cached whole (Secrets are not). In the
// order of writing: an object comes after the objects that it needs.
std::span<const object::Resource> rendered_resources();

// The one of them with this kind, or null.
const object::Resource* rendered_of(std::string_view kind);

}  // namespace sightline::owned
