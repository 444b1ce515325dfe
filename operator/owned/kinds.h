// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "operator/kube/object/resource.h"

// The resources that the operator reads and writes.
namespace sightline::owned {

const object::Resource& routers_resource();  // MultimodalRouter
const object::Resource& scales_resource();   // MultimodalRouterPool
const object::Resource& pods_resource();
const object::Resource& replica_sets_resource();  // of our Deployments; never written
const object::Resource& secrets_resource();
const object::Resource& claims_resource();  // PersistentVolumeClaims of users; never written
const object::Resource& pod_monitors_resource();
const object::Resource& config_maps_resource();
const object::Resource& deployments_resource();
const object::Resource& stateful_sets_resource();

// What is rendered for a MultimodalRouter and is cached whole, which Secrets are not. In the order
// in which they are written: what others need comes first.
std::span<const object::Resource> rendered_resources();

// Of those, the one with this kind; null: none.
const object::Resource* rendered_of(std::string_view kind);

}  // namespace sightline::owned
