// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/secrets.h"

#include <utility>

#include "common/base/bytes.h"

#include "operator/desired/nats_config.h"

namespace sightline::desired {

using object::Value;

namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(ByteView bytes) {
  std::string text;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    held = (held << 8U) | byte;
    for (bits += 8; bits >= 6;) {
      bits -= 6;
      text += kBase64[(held >> bits) & 63U];
    }
  }
  if (bits > 0) text += kBase64[(held << (6 - bits)) & 63U];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  std::uint32_t held = 0;
  unsigned bits = 0;
  if (text.ends_with('=')) text.remove_suffix(1);
  if (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const std::size_t value = kBase64.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    held = (held << 6U) | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits);
  }
  return bytes;
}

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
  put(begin("identity"), kIdentityKey, draws.identity);
  Value& tokens = begin("tokens");
  put(tokens, kAdminToken, bytes_of(to_hex(draws.admin)));
  put(tokens, kSelectionToken, bytes_of(to_hex(draws.selection)));
  if (nats.external) return made;
  put_user(begin(user_part(kFrontend)), draws.nats_frontend);
  put_user(begin(user_part(kRouterComponent)), draws.nats_router);
  put_user(begin(user_part(kAgent)), draws.nats_agent);
  put(begin("nats-server"), kNatsClusterFile,
      bytes_of(nats_cluster_config(owner, to_hex(draws.nats_cluster))));
  return made;
}

std::optional<std::string> secret_value(const Value& secret, std::string_view key) {
  const Value& value = secret.at({"data", key});
  if (!value.is_string()) return std::nullopt;
  return from_base64(value.text());
}

SecretFile identity_file(const Owner& owner) {
  return {.secret = shared_name(owner, "identity"),
          .key = std::string(kIdentityKey),
          .file = std::string(kIdentityKey)};
}

SecretFile token_file(const Owner& owner, std::string_view token) {
  return {.secret = shared_name(owner, "tokens"),
          .key = std::string(token),
          .file = std::string(token)};
}

std::vector<SecretFile> nats_files(const Scene& scene, std::string_view user) {
  const auto& external = scene.spec.nats.external;
  if (!external) {
    return {{.secret = shared_name(scene.owner, user_part(user)),
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
