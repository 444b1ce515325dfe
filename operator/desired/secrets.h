// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/nkey.h"
#include "operator/desired/pods.h"
#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// What only the pods of one MultimodalRouter know. Each Secret is created once, if it is not there,
// and never written again: a user may bring or replace it. What is in them is printed nowhere.
namespace sightline::desired {

// The part of their names: NAME-identity, NAME-REVISION-identity.
inline constexpr std::string_view kIdentity = "identity";
// Keys of NAME-identity and NAME-tokens, and of NAME-nats-USER.
inline constexpr std::string_view kIdentityKey = "key";
inline constexpr std::string_view kAdminToken = "admin";  // for pushes to routers and frontends
inline constexpr std::string_view kSelectionToken = "selection";  // of frontends, at routers
// Key of NAME-drain: for POST /drain at the agents of workers' pods.
inline constexpr std::string_view kDrainToken = "token";
inline constexpr std::string_view kSeedKey = "seed";
inline constexpr std::string_view kPublicKey = "public";

// Users of the managed NATS.
inline constexpr std::string_view kNatsUsers[] = {kFrontend, kRouterComponent, kAgent};

// Random bytes, drawn by who creates the Secrets.
struct Draws {
  KeyBytes identity{};
  KeyBytes admin{};
  KeyBytes selection{};
  KeyBytes drain{};
  KeyBytes nats_frontend{};
  KeyBytes nats_router{};
  KeyBytes nats_agent{};
  KeyBytes nats_cluster{};
};

// NAME-identity, NAME-tokens, NAME-drain and, for a managed NATS, NAME-nats-frontend, -router,
// -agent and -server; the last one is the servers' own (nats.h). Nothing is made for an external
// NATS.
std::vector<object::Value> secrets(const Owner& owner, const object::Value& owner_reference,
                                   const crd::Nats& nats, const Draws& draws);

// NAME-REVISION-identity: the key of NAME-identity as it was when the revision was made, so that a
// pod of an older revision which starts again never meets another one. It belongs to the ConfigMap
// of the revision, which goes with the revision; nothing in it is ever changed.
object::Value revision_identity(const Scene& scene, const object::Value& config_map,
                                std::string_view key);

// The value of a Secret's key, decoded; nothing where it has none that is base64.
std::optional<std::string> secret_value(const object::Value& secret, std::string_view key);

// Files of the Secrets, for PodSpec::mount_secret().
SecretFile identity_file(const Scene& scene);
SecretFile token_file(const Owner& owner, std::string_view token);
SecretFile drain_file(const Owner& owner);
// What a user shows to NATS, as nats_environment() says: a seed of our own, or what the spec names
// of an external NATS; none where it names nothing.
std::vector<SecretFile> nats_files(const Scene& scene, std::string_view user);

}  // namespace sightline::desired
