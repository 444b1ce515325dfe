// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/crd/spec.h"
#include "operator/desired/names.h"
#include "operator/desired/nats_config.h"
#include "operator/desired/scene.h"
#include "operator/kube/client/api_client.h"
#include "operator/kube/object/value.h"
#include "operator/owned/caches.h"

namespace sightline::owned {

// What an object's Secrets hold, as far as the operator needs it. Secret.
struct OwnValues {
  std::string identity_digest;  // of the identity key; tells nothing of it
  std::string admin_token;
  desired::NatsKeys nats;  // public
};

// The Secrets of MultimodalRouters: made once, of random bytes, where they are not there; never
// written again, so that whoever replaces one rotates it. One is read when its version has become
// another one; who may not list Secrets reads it from time to time.
// Thread safety: all methods from any thread; for one object from one at a time.
class OwnSecrets {
 public:
  // After this a Secret that was replaced is noticed where Secrets may not be listed.
  static constexpr Duration kReadAfter = std::chrono::seconds(30);

  // They must outlive it.
  OwnSecrets(client::ApiClient& api, const Caches& caches, const Clock& clock)
      : api_(api), caches_(caches), clock_(clock) {}

  client::Answer<OwnValues> ensure(const desired::Owner& owner, const object::Value& reference,
                                   const crd::Nats& nats);

  // The Secret with the identity key that the pods of a revision read: made once, while
  // NAME-identity has the key of the scene's agreement, and the revision its ConfigMap. Fails where
  // it holds, or would hold, another key.
  client::Answer<Done> ensure_identity(const desired::Scene& scene);
  void forget(const object::Key& router);

 private:
  client::Answer<object::Value> get_or_create(const object::Value& fresh);
  client::Answer<object::Value> copy_identity(const desired::Scene& scene);

  // When Secrets were read, and which versions they were then, by name.
  struct Read {
    std::map<std::string, std::string> versions;
    Instant at{};
  };
  struct Held {
    OwnValues values;
    std::string owner_uid;
    bool has_nats = false;
    Read read;
  };
  [[nodiscard]] bool is_unchanged(const Read& read, const std::string& name_space) const;

  client::ApiClient& api_;
  const Caches& caches_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<object::Key, Held> held_ SL_GUARDED_BY(mutex_);
  // The key of a revision was seen to be its own, by the object and the revision.
  std::map<object::Key, std::map<std::string, Read>> seen_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::owned
