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
#include "operator/desired/object_names.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// All input of the builders: one revision of one MultimodalRouter.
struct RenderInput {
  Owner owner;
  // object::controller_reference() of the MultimodalRouter.
  object::Value owner_reference;
  crd::Spec spec;
  agreement::Agreement agreement;
  // agreement::revision_of(agreement).
  std::string revision;
  // From the operator's flags. Images in the spec take precedence.
  crd::NotedImages images;
  // The text of spec.model.chatTemplate when the revision was made. Nothing: it is unknown.
  std::optional<std::string> chat_template;
  // The first address of a pod is an IPv6 address.
  bool is_ipv6 = false;
};

// The number of pods of each component of a revision.
struct Sizes {
  // Nothing: an autoscaler sets it.
  std::optional<std::int64_t> frontends;
  std::int64_t routers = 0;
  // Of pools with a template. A missing pool has no pods.
  std::map<std::string, std::int64_t> pools;
};

// The ports of pods, which have the names of their purpose.
inline constexpr std::int64_t kClientPort = 8000;
inline constexpr std::int64_t kSelectionPort = 8092;
inline constexpr std::int64_t kAdminPort = 9090;

// Paths in pods.
inline constexpr std::string_view kModelPath = "/models";
// *.yaml.
inline constexpr std::string_view kConfigPath = "/etc/sightline/config";
// Key.
inline constexpr std::string_view kIdentityPath = "/etc/sightline/identity";
// Admin, selection.
inline constexpr std::string_view kTokensPath = "/etc/sightline/tokens";
// Token.
inline constexpr std::string_view kDrainPath = "/etc/sightline/drain";
// Seed, credentials, ca.crt.
inline constexpr std::string_view kNatsPath = "/etc/sightline/nats";
// KTemplateFile.
inline constexpr std::string_view kTemplatePath = "/etc/sightline/template";
inline constexpr std::string_view kTemplateFile = "chat_template.jinja";

// The image of frontends, routers, agents and simulators.
std::string router_image(const RenderInput& input);

// The seconds of a duration, for example "2m", "500ms", "90s" or "1h", rounded up.
std::int64_t seconds_of(const std::string& duration);
// How long requests may continue at a pod that terminates: spec.rollout.drainTimeout, at most the
// hour that programs accept.
std::int64_t drain_seconds(const crd::Spec& spec);

// An object's kind, apiVersion and metadata with labels and owner.
struct Title {
  std::string_view api_version;
  std::string_view kind;
  std::string name;
  object::Value labels;
};
object::Value object_of(const Owner& owner, const object::Value& owner_reference, Title title);
object::Value object_of(const RenderInput& input, Title title);

}  // namespace sightline::desired
