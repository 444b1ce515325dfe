// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/secrets.h"

#include <utility>

#include "common/base/base64.h"
#include "common/base/bytes.h"

#include "operator/desired/nats_config.h"
#include "operator/kube/object/metadata.h"

namespace sightline::desired {

using object::Value;

namespace {

std::string user_part(std::string_view user) { return "nats-" + std::string(user); }

Value empty_secret(const Owner& owner, const Value& owner_reference, std::string_view part) {
  Value secret = object_of(owner, owner_reference,
                           {.api_version = "v1",
                            .kind = "Secret",
                            .name = shared_name(owner, part),
                            .labels = labels(owner, "secret", {})});
  secret.member("type") = "Opaque";
  return secret;
}

void put(Value& secret, std::string_view key, ByteView bytes) {
  secret.set({"data", key}, to_base64(bytes));
}

void put_user(Value& secret, const KeyBytes& bytes) {
  const Nkey user = user_nkey(bytes);
  put(secret, kSeedKey, bytes_of(user.seed));
  put(secret, kPublicKey, bytes_of(user.public_key));
}

}  // namespace

std::vector<Value> secrets(const Owner& owner, const Value& owner_reference, const crd::Nats& nats,
                           const Draws& draws) {
  std::vector<Value> made;
  const auto begin = [&](std::string_view part) -> Value& {
    return made.emplace_back(empty_secret(owner, owner_reference, part));
  };
  put(begin(kIdentity), kIdentityKey, draws.identity);
  Value& tokens = begin("tokens");
  put(tokens, kAdminToken, bytes_of(to_hex(draws.admin)));
  put(tokens, kSelectionToken, bytes_of(to_hex(draws.selection)));
  // In a Secret of its own, because workers' pods must have this token and no other.
  put(begin("drain"), kDrainToken, bytes_of(to_hex(draws.drain)));
  if (nats.external) return made;
  put_user(begin(user_part(kFrontend)), draws.nats_frontend);
  put_user(begin(user_part(kRouterComponent)), draws.nats_router);
  put_user(begin(user_part(kAgent)), draws.nats_agent);
  put(begin("nats-server"), kNatsClusterFile,
      bytes_of(nats_cluster_config(owner, to_hex(draws.nats_cluster))));
  return made;
}

Value revision_identity(const RenderInput& input, const Value& config_map, std::string_view key) {
  Value owner = object::controller_reference(config_map);
  // blockOwnerDeletion would need a right that the operator does not need otherwise.
  owner.erase({"blockOwnerDeletion"});
  Value secret = object_of(input.owner, owner,
                           {.api_version = "v1",
                            .kind = "Secret",
                            .name = identity_file(input).secret,
                            .labels = labels(input.owner, "secret", input.revision)});
  secret.member("type") = "Opaque";
  secret.member("immutable") = true;
  put(secret, kIdentityKey, bytes_of(key));
  return secret;
}

std::optional<std::string> secret_value(const Value& secret, std::string_view key) {
  const Value& value = secret.at({"data", key});
  if (!value.is_string()) return std::nullopt;
  return from_base64(value.text());
}

SecretFile identity_file(const RenderInput& input) {
  return {.secret = revision_name(input.owner, input.revision, kIdentity),
          .key = std::string(kIdentityKey),
          .file = std::string(kIdentityKey)};
}

SecretFile token_file(const Owner& owner, std::string_view token) {
  return {.secret = shared_name(owner, "tokens"),
          .key = std::string(token),
          .file = std::string(token)};
}

SecretFile drain_file(const Owner& owner) {
  return {.secret = shared_name(owner, "drain"),
          .key = std::string(kDrainToken),
          .file = std::string(kDrainToken)};
}

std::vector<SecretFile> nats_files(const RenderInput& input, std::string_view user) {
  const auto& external = input.spec.nats.external;
  if (!external) {
    return {{.secret = shared_name(input.owner, user_part(user)),
             .key = std::string(kSeedKey),
             .file = std::string(kSeedKey)}};
  }
  std::vector<SecretFile> files;
  if (const auto& secret = external->credentials_secret) {
    files.push_back({.secret = secret->name, .key = secret->key, .file = "credentials"});
  }
  if (const auto& secret = external->ca_secret) {
    files.push_back({.secret = secret->name, .key = secret->key, .file = "ca.crt"});
  }
  return files;
}

}  // namespace sightline::desired
