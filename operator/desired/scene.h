// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "operator/agreement/agreement.h"
#include "operator/crd/spec.h"
#include "operator/crd/status.h"
#include "operator/desired/names.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// All that builders read: one revision of one MultimodalRouter.
struct Scene {
  Owner owner;
  object::Value owner_reference;  // object::controller_reference() of the MultimodalRouter
  crd::Spec spec;
  agreement::Agreement agreement;
  std::string revision;     // agreement::revision_of(agreement)
  crd::NotedImages images;  // of the operator's flags; those of the spec win
  // Text of spec.model.chatTemplate, as the revision was made with it; nothing: it is not known.
  std::optional<std::string> chat_template;
  bool is_ipv6 = false;  // the first address of a pod is an IPv6 address
};

// How many pods the components of a revision have.
struct Sizes {
  std::optional<std::int64_t> frontends;  // nothing: an autoscaler says it
  std::int64_t routers = 0;
  std::map<std::string, std::int64_t> pools;  // with a template; one that is not named has none
};

// Ports of pods, each with the name of what it serves.
inline constexpr std::int64_t kClientPort = 8000;
inline constexpr std::int64_t kSelectionPort = 8092;
inline constexpr std::int64_t kAdminPort = 9090;

// Where things are in pods.
inline constexpr std::string_view kModelPath = "/models";
inline constexpr std::string_view kConfigPath = "/etc/sightline/config";      // *.yaml
inline constexpr std::string_view kIdentityPath = "/etc/sightline/identity";  // key
inline constexpr std::string_view kTokensPath = "/etc/sightline/tokens";      // admin, selection
inline constexpr std::string_view kDrainPath = "/etc/sightline/drain";        // token
inline constexpr std::string_view kNatsPath = "/etc/sightline/nats";  // seed, credentials, ca.crt
inline constexpr std::string_view kTemplatePath = "/etc/sightline/template";  // kTemplateFile
inline constexpr std::string_view kTemplateFile = "chat_template.jinja";

// The image of frontends, routers, agents and simulators.
std::string router_image(const Scene& scene);

// Whole seconds of "2m", "500ms", "90s", "1h", rounded up.
std::int64_t seconds_of(const std::string& duration);
// How long requests may go on at a pod that ends: spec.rollout.drainTimeout, at most the hour that
// programs take.
std::int64_t drain_seconds(const crd::Spec& spec);

// kind, apiVersion, metadata with labels and the owner.
struct Title {
  std::string_view api_version;
  std::string_view kind;
  std::string name;
  object::Value labels;
};
object::Value object_of(const Owner& owner, const object::Value& owner_reference, Title title);
object::Value object_of(const Scene& scene, Title title);

}  // namespace sightline::desired
