// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/object/value.h"

// The names and labels of all objects of a MultimodalRouter. A name depends only on the object, the
// revision and the pool. So an object is found again if the answer to its creation was lost.
namespace sightline::desired {

// The MultimodalRouter's name.
inline constexpr std::string_view kRouterLabel = "sightline.dev/router";
inline constexpr std::string_view kRevisionLabel = "sightline.dev/revision";
inline constexpr std::string_view kPoolLabel = "sightline.dev/pool";
inline constexpr std::string_view kComponentLabel = "app.kubernetes.io/component";
inline constexpr std::string_view kManagerLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManager = "sightline-operator";
// A readiness gate of a pod: routers have admitted the worker.
inline constexpr std::string_view kRoutableGate = "sightline.dev/routable";
// Annotations of a pod template: the text of spec.restart, and the digest of a configuration that
// programs read only at start.
inline constexpr std::string_view kRestartAnnotation = "sightline.dev/restart";
inline constexpr std::string_view kConfigAnnotation = "sightline.dev/config";

// An annotation of an agent's pod: the digest of its list of workers. When a pod's annotations
// change, its kubelet refreshes its ConfigMaps immediately, otherwise once in 90 s.
inline constexpr std::string_view kListAnnotation = "sightline.dev/list";

inline constexpr std::string_view kFrontend = "frontend";
inline constexpr std::string_view kRouterComponent = "router";
inline constexpr std::string_view kWorker = "worker";
inline constexpr std::string_view kAgent = "agent";
inline constexpr std::string_view kNats = "nats";
// Agents of workers that others run.
inline constexpr std::string_view kAgents = "agents";

// The name of one MultimodalRouter.
struct Owner {
  std::string name_space;
  // At most 40 characters.
  std::string name;
};

// NAME-REVISION-PART, for example "shop-k2x9p0aa-frontend". With 40 characters in NAME, a Service's
// name stays within its limit of 63. Names of Deployments may have up to 65.
std::string revision_name(const Owner& owner, std::string_view revision, std::string_view part);
// NAME-PART, for objects that all revisions share.
std::string shared_name(const Owner& owner, std::string_view part);

// The labels that select the pods of a component of a revision. They must never change, because
// selectors of Deployments cannot.
object::Value selector_labels(const Owner& owner, std::string_view component,
                              std::string_view revision, std::string_view pool = {});
// The selector labels, and labels that only describe.
object::Value labels(const Owner& owner, std::string_view component, std::string_view revision,
                     std::string_view pool = {});

}  // namespace sightline::desired
