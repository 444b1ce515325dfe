// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/owned/own_secrets.h"

#include <algorithm>
#include <utility>

#include "common/runtime/entropy.h"

#include "operator/agreement/agreement.h"
#include "operator/desired/program_settings.h"
#include "operator/desired/secrets.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/applier.h"
#include "operator/owned/kinds.h"

namespace sightline::owned {

using client::Answer;
using client::Failure;
using client::Reason;
using desired::KeyBytes;
using object::Value;

namespace {

KeyBytes drawn() {
  KeyBytes bytes{};
  runtime::fill_unguessable(bytes);
  return bytes;
}

desired::Draws all_drawn() {
  return {.identity = drawn(),
          .admin = drawn(),
          .selection = drawn(),
          .drain = drawn(),
          .nats_frontend = drawn(),
          .nats_router = drawn(),
          .nats_agent = drawn(),
          .nats_cluster = drawn()};
}

Failure about(std::string_view secret, Reason reason, const std::string& what) {
  Failure made;
  made.reason = reason;
  made.message = "Secret " + std::string(secret) + " " + what;
  return made;
}

// A Secret from a user may lack a needed key.
Answer<std::string> value_of(const Value& secret, std::string_view key) {
  auto value = desired::secret_value(secret, key);
  if (value && !value->empty()) return std::move(*value);
  return about(object::key_of(secret).name, Reason::Invalid,
               "has no key " + std::string(key) +
                   ". Add it, or delete the Secret: the operator then makes a new one");
}

// True for the Secret of a deleted object of the same name that the garbage collector has not
// deleted yet.
bool is_about_to_go(const Value& secret, std::string_view owner_uid) {
  const std::string_view controller = object::controller_uid_of(secret);
  return object::is_being_deleted(secret) || (!controller.empty() && controller != owner_uid);
}

std::string_view owner_of(const Value& secret) {
  const auto& owners = secret.at({"metadata", "ownerReferences"}).items();
  return owners.empty() ? std::string_view() : owners.front()["name"].text();
}

// True if the Secret belongs to an object of another name, which is assumed to live.
bool is_of_another_name(const Value& secret, const Value& fresh) {
  return !object::is_being_deleted(secret) && !owner_of(secret).empty() &&
         owner_of(secret) != owner_of(fresh);
}

// A file may end with a line end, and may have several tokens while one replaces another. The
// operator uses the first.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Answer<Value> OwnSecrets::get_or_create(const Value& fresh) {
  const object::Key key = object::key_of(fresh);
  auto there = api_.get(secrets_resource(), key);
  if (failed(there, Reason::NotFound)) {
    auto made = api_.create(secrets_resource(), fresh);
    // Another process was faster, or an answer was lost. The existing Secret counts.
    if (!failed(made, Reason::AlreadyExists)) return made;
    there = api_.get(secrets_resource(), key);
  }
  if (there.ok() && is_of_another_name(*there, fresh)) return name_taken(fresh, *there);
  if (there.ok() && is_about_to_go(*there, object::controller_uid_of(fresh))) {
    return about(key.name, Reason::Conflict,
                 "is being deleted or belongs to a deleted object: waiting until it is gone");
  }
  return there;
}

Answer<Value> OwnSecrets::copy_identity(const desired::RenderInput& input) {
  const std::string& name_space = input.owner.name_space;
  const Value source = SL_TRY(api_.get(
      secrets_resource(), {name_space, desired::shared_name(input.owner, desired::kIdentity)}));
  const std::string key = SL_TRY(value_of(source, desired::kIdentityKey));
  if (agreement::digest_of(key) != input.agreement.identity_key) {
    return about(object::key_of(source).name, Reason::Conflict,
                 "was replaced meanwhile: its new key makes another revision");
  }
  const Value config_map =
      SL_TRY(api_.get(config_maps_resource(), {name_space, desired::revision_config_name(input)}));
  return get_or_create(desired::revision_identity(input, config_map, key));
}

bool OwnSecrets::is_unchanged(const SecretVersions& read, const std::string& name_space) const {
  if (!caches_.knows(secrets_resource())) return clock_.now() - read.at < kReadAfter;
  return std::all_of(read.versions.begin(), read.versions.end(), [&](const auto& one) {
    const auto listed = caches_.find(secrets_resource(), {name_space, one.first});
    return listed != nullptr && object::resource_version_of(*listed) == one.second;
  });
}

Answer<Done> OwnSecrets::ensure_identity(const desired::RenderInput& input) {
  const object::Key router{input.owner.name_space, input.owner.name};
  const Instant now = clock_.now();
  {
    const MutexLock lock(mutex_);
    auto& seen = seen_[router];
    std::erase_if(seen,
                  [&](const auto& one) { return !is_unchanged(one.second, router.name_space); });
    if (seen.contains(input.revision)) return Done{};
  }
  auto secret =
      api_.get(secrets_resource(), {input.owner.name_space, desired::identity_file(input).secret});
  if (failed(secret, Reason::NotFound)) secret = copy_identity(input);
  const Value there = SL_TRY(std::move(secret));
  const std::string key = SL_TRY(value_of(there, desired::kIdentityKey));
  if (agreement::digest_of(key) != input.agreement.identity_key) {
    return about(object::key_of(there).name, Reason::Invalid,
                 "does not have the key of its revision. Delete it");
  }
  const std::string version(object::resource_version_of(there));
  const MutexLock lock(mutex_);
  seen_[router][input.revision] = {.versions = {{object::key_of(there).name, version}}, .at = now};
  return Done{};
}

Answer<OwnValues> OwnSecrets::ensure(const desired::Owner& owner, const Value& reference,
                                     const crd::Nats& nats) {
  const object::Key router{owner.name_space, owner.name};
  const std::string uid(reference["uid"].text());
  const bool has_nats = !nats.external;
  const Instant now = clock_.now();
  {
    const MutexLock lock(mutex_);
    const auto held = held_.find(router);
    const bool counts = held != held_.end() && held->second.owner_uid == uid &&
                        held->second.has_nats == has_nats &&
                        is_unchanged(held->second.read, router.name_space);
    if (counts) return held->second.values;
  }
  std::map<std::string, Value> secrets;
  for (const Value& fresh : desired::secrets(owner, reference, nats, all_drawn())) {
    secrets[object::key_of(fresh).name] = SL_TRY(get_or_create(fresh));
  }
  const auto read = [&](std::string_view part, std::string_view key) {
    return value_of(secrets[desired::shared_name(owner, part)], key);
  };
  OwnValues values;
  values.identity_digest =
      agreement::digest_of(SL_TRY(read(desired::kIdentity, desired::kIdentityKey)));
  values.admin_token = first_line(SL_TRY(read("tokens", desired::kAdminToken)));
  if (has_nats) {
    values.nats.frontend = SL_TRY(read("nats-frontend", desired::kPublicKey));
    values.nats.router = SL_TRY(read("nats-router", desired::kPublicKey));
    values.nats.agent = SL_TRY(read("nats-agent", desired::kPublicKey));
  }
  SecretVersions all{.versions = {}, .at = now};
  for (const auto& [name, secret] : secrets) {
    all.versions[name] = object::resource_version_of(secret);
  }
  const MutexLock lock(mutex_);
  held_[router] = {
      .values = values, .owner_uid = uid, .has_nats = has_nats, .read = std::move(all)};
  return values;
}

void OwnSecrets::forget(const object::Key& router) {
  const MutexLock lock(mutex_);
  held_.erase(router);
  seen_.erase(router);
}

}  // namespace sightline::owned
