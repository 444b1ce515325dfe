// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/crd/spec.h"
#include "operator/desired/nats_config.h"
#include "operator/desired/object_names.h"
#include "operator/desired/render_input.h"
#include "operator/kube/client/api_client.h"
#include "operator/kube/object/value.h"
#include "operator/owned/caches.h"

namespace sightline::owned {

// What the operator needs from the Secrets of an object. Secret.
struct OwnValues {
  // A digest of the identity key, which does not reveal it.
  std::string identity_digest;
  std::string admin_token;
  // The public keys.
  desired::NatsKeys nats;
};

// The Secrets of MultimodalRouters. The operator creates a missing one with random bytes and never
// writes it again, so a user rotates a Secret by replacing it. A Secret is read when its version
// has changed. Without the right to list Secrets, it is read from time to time.
// Thread safety: all methods from any thread, but one object from one thread at a time.
class OwnSecrets {
 public:
  // How soon a replaced Secret is noticed if Secrets may not be listed.
  static constexpr Duration kReadAfter = std::chrono::seconds(30);

  // All must outlive it.
  OwnSecrets(client::ApiClient& api, const Caches& caches, const Clock& clock)
      : api_(api), caches_(caches), clock_(clock) {}

  // Creates missing Secrets of the object and returns their values.
  client::Answer<OwnValues> ensure(const desired::Owner& owner, const object::Value& reference,
                                   const crd::Nats& nats);

  // Creates the Secret with the identity key that the pods of a revision read, once. It copies the
  // key from NAME-identity, while that has the key of the revision's agreement and the revision has
  // its ConfigMap. Fails if the Secret holds, or would hold, another key.
  client::Answer<Done> ensure_identity(const desired::RenderInput& input);
  // Drops the state of this object's Secrets.
  void forget(const object::Key& router);

 private:
  // The Secret with the name of `fresh`. Creates it if it is missing. Fails with Conflict while a
  // Secret of a deleted object has the name.
  client::Answer<object::Value> get_or_create(const object::Value& fresh);
  // Creates the Secret of a revision, see ensure_identity().
  client::Answer<object::Value> copy_identity(const desired::RenderInput& input);

  // When Secrets were read, and their versions at that time, by name.
  struct SecretVersions {
    std::map<std::string, std::string> versions;
    Instant at{};
  };
  // The values of one object, and what they depend on.
  struct StoredValues {
    OwnValues values;
    std::string owner_uid;
    bool has_nats = false;
    SecretVersions read;
  };
  // Whether the Secrets have these versions. If Secrets may not be listed: whether they were read
  // less than kReadAfter ago.
  [[nodiscard]] bool is_unchanged(const SecretVersions& read, const std::string& name_space) const;

  client::ApiClient& api_;
  const Caches& caches_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<object::Key, StoredValues> held_ SL_GUARDED_BY(mutex_);
  // The revisions whose Secret was found to have the right key, by object.
  std::map<object::Key, std::map<std::string, SecretVersions>> seen_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::owned
