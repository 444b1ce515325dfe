// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/nkey.h"
#include "operator/desired/pods.h"
#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// The Secrets that only the pods of one MultimodalRouter have. Each is created once, if it is
// missing, and never written again: a user may bring or replace it. Their content must never be
// logged.
namespace sightline::desired {

// The last part of the names NAME-identity and NAME-REVISION-identity.
inline constexpr std::string_view kIdentity = "identity";
// Keys of NAME-identity and NAME-tokens, and of NAME-nats-USER.
inline constexpr std::string_view kIdentityKey = "key";
// For pushes to routers and frontends.
inline constexpr std::string_view kAdminToken = "admin";
// Of frontends, at routers.
inline constexpr std::string_view kSelectionToken = "selection";
// The key of NAME-drain, for POST /drain at the agents of workers' pods.
inline constexpr std::string_view kDrainToken = "token";
inline constexpr std::string_view kSeedKey = "seed";
inline constexpr std::string_view kPublicKey = "public";

// The users of the managed NATS.
inline constexpr std::string_view kNatsUsers[] = {kFrontend, kRouterComponent, kAgent};

// Random bytes. The creator of the Secrets draws them.
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
// -agent and -server. The last one is for the servers (nats.h). An external NATS gets no Secrets.
std::vector<object::Value> secrets(const Owner& owner, const object::Value& owner_reference,
                                   const crd::Nats& nats, const Draws& draws);

// NAME-REVISION-identity: the key of NAME-identity when the revision was made. A restarted pod of
// an older revision so never gets another key. The ConfigMap of the revision owns it, and is
// deleted with the revision. Its content never changes.
object::Value revision_identity(const RenderInput& input, const object::Value& config_map,
                                std::string_view key);

// The decoded value of a Secret's key. Nothing if the key is missing or is not base64.
std::optional<std::string> secret_value(const object::Value& secret, std::string_view key);

// Files of the Secrets, for PodSpec::mount_secret().
SecretFile identity_file(const RenderInput& input);
SecretFile token_file(const Owner& owner, std::string_view token);
SecretFile drain_file(const Owner& owner);
// The credentials of a user for NATS, for the paths of nats_environment(). They are a seed of our
// own, or what the spec names for an external NATS. Empty if it names nothing.
std::vector<SecretFile> nats_files(const RenderInput& input, std::string_view user);

}  // namespace sightline::desired
