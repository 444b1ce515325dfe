// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/object/value.h"

// Names and labels of everything that belongs to a MultimodalRouter. Names follow from those of the
// object, the revision and the pool alone, so that a lost answer to a create is found again.
namespace sightline::desired {

inline constexpr std::string_view kRouterLabel = "sightline.dev/router";  // the MultimodalRouter
inline constexpr std::string_view kRevisionLabel = "sightline.dev/revision";
inline constexpr std::string_view kPoolLabel = "sightline.dev/pool";
inline constexpr std::string_view kComponentLabel = "app.kubernetes.io/component";
inline constexpr std::string_view kManagerLabel = "app.kubernetes.io/managed-by";
inline constexpr std::string_view kManager = "sightline-operator";
// A pod's gate: routers have admitted the worker.
inline constexpr std::string_view kRoutableGate = "sightline.dev/routable";
// Of a pod template: the text of spec.restart, and the digest of a configuration that is read at
// the start only.
inline constexpr std::string_view kRestartAnnotation = "sightline.dev/restart";
inline constexpr std::string_view kConfigAnnotation = "sightline.dev/config";

// Of an agent's pod: the digest of its list of workers. When a pod's annotations change its kubelet
// looks at its ConfigMaps at once, else once in 90 s.
inline constexpr std::string_view kListAnnotation = "sightline.dev/list";

inline constexpr std::string_view kFrontend = "frontend";
inline constexpr std::string_view kRouterComponent = "router";
inline constexpr std::string_view kWorker = "worker";
inline constexpr std::string_view kAgent = "agent";
inline constexpr std::string_view kNats = "nats";
inline constexpr std::string_view kAgents = "agents";  // of workers that somebody else runs

// Of one MultimodalRouter.
struct Owner {
  std::string name_space;
  std::string name;  // at most 40 characters
};

// NAME-REVISION-PART: "shop-k2x9p0aa-frontend". With the 40 characters that a name may have, that
// of a Service stays within 63; those of Deployments, up to 65, need not.
std::string revision_name(const Owner& owner, std::string_view revision, std::string_view part);
// NAME-PART: of what all revisions share.
std::string shared_name(const Owner& owner, std::string_view part);

// What selects the pods of a component of a revision; never changed, since selectors of Deployments
// cannot be.
object::Value selector_labels(const Owner& owner, std::string_view component,
                              std::string_view revision, std::string_view pool = {});
// Those and what describes.
object::Value labels(const Owner& owner, std::string_view component, std::string_view revision,
                     std::string_view pool = {});

}  // namespace sightline::desired
