// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/crd/spec.h"
#include "operator/judge/accept.h"
#include "operator/judge/cluster_state.h"
#include "operator/kube/client/api_client.h"
#include "operator/owned/caches.h"
#include "operator/routers/router_admin.h"

namespace sightline::reconcile {

// Reads the state: caches, objects of users, routers. Changes nothing.
// Thread safety: all methods from any thread.
class Observer {
 public:
  // All must outlive it.
  Observer(client::ApiClient& api, const owned::Caches& caches, routers::RouterAdmin& routers,
           const Clock& clock)
      : api_(api), caches_(caches), routers_(routers), clock_(clock) {}

  // The pods that our own controllers made for this MultimodalRouter, and its Deployments. A
  // controller whose owner reference was removed is recognised by its labels.
  [[nodiscard]] std::vector<judge::Pod> pods(const object::Key& router, std::string_view uid) const;
  [[nodiscard]] std::vector<judge::Deployment> deployments(const object::Key& router,
                                                           std::string_view uid) const;
  // The ready servers of a managed NATS. Nothing: there is no managed NATS.
  [[nodiscard]] std::optional<std::int64_t> nats_ready(const object::Key& router,
                                                       std::string_view uid) const;
  // The replicas that MultimodalRouterPools request, by pool.
  [[nodiscard]] std::map<std::string, std::int64_t> scales(std::string_view uid) const;

  // The pods of others that a pool selects, as workers of this pool. Pods of MultimodalRouters
  // never count, even if the selector finds them. Fails with Invalid if there are more than
  // kSelectedMax.
  static constexpr std::size_t kSelectedMax = 4096;
  client::Answer<std::vector<judge::Pod>> selected(const std::string& name_space,
                                                   const crd::Pool& pool);
  // Which of the objects that a spec names exist. Reads a Secret again only if its version is
  // unknown, and a claim that exists only after kClaimAfter.
  static constexpr Duration kClaimAfter = std::chrono::seconds(30);
  client::Answer<judge::ExistingObjects> references(const std::string& name_space,
                                                    const crd::Spec& spec);
  // The reports of all router pods. A router whose turn does not come within kAskMax counts as
  // silent.
  static constexpr Duration kAskMax = std::chrono::seconds(10);
  [[nodiscard]] std::vector<judge::RouterReport> reports(const std::vector<judge::Pod>& pods,
                                                         const std::string& token);

 private:
  // Whether this Secret exists and has this key.
  client::Answer<bool> has_key(const std::string& name_space, const crd::SecretRef& secret);
  // Whether this claim exists.
  client::Answer<bool> has_claim(const object::Key& claim);

  // A user's Secret when it was last read.
  struct Read {
    std::string version;
    std::set<std::string, std::less<>> keys;
  };

  client::ApiClient& api_;
  const owned::Caches& caches_;
  routers::RouterAdmin& routers_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<object::Key, Read> secrets_ SL_GUARDED_BY(mutex_);
  // When they were seen.
  std::map<object::Key, Instant> claims_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::reconcile
