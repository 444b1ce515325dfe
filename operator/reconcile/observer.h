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
#include "operator/judge/world.h"
#include "operator/kube/client/api_client.h"
#include "operator/owned/caches.h"
#include "operator/routers/router_admin.h"

namespace sightline::reconcile {

// The I/O of looking: caches, objects of others, routers. Nothing is changed.
// Thread safety: all methods from any thread.
class Observer {
 public:
  // They must outlive it.
  Observer(client::ApiClient& api, const owned::Caches& caches, routers::RouterAdmin& routers,
           const Clock& clock)
      : api_(api), caches_(caches), routers_(routers), clock_(clock) {}

  // Pods that our own controllers made for this MultimodalRouter, and its Deployments. A controller
  // whose owner was taken off it is ours by its labels.
  [[nodiscard]] std::vector<judge::Pod> pods(const object::Key& router, std::string_view uid) const;
  [[nodiscard]] std::vector<judge::Deployment> deployments(const object::Key& router,
                                                           std::string_view uid) const;
  // Ready servers of a managed NATS; nothing: there is none.
  [[nodiscard]] std::optional<std::int64_t> nats_ready(const object::Key& router,
                                                       std::string_view uid) const;
  // Replicas that MultimodalRouterPools ask for, by pool.
  [[nodiscard]] std::map<std::string, std::int64_t> scales(std::string_view uid) const;

  // Pods of somebody else that a pool selects, as workers of that pool; those of MultimodalRouters
  // are nobody else's, whatever the selector finds. Fails with Invalid if they
  // are more than kSelectedMax.
  static constexpr std::size_t kSelectedMax = 4096;
  client::Answer<std::vector<judge::Pod>> selected(const std::string& name_space,
                                                   const crd::Pool& pool);
  // Which of the objects that a spec names are there. A Secret whose version is known is not read
  // again, a claim that was there not within kClaimAfter.
  static constexpr Duration kClaimAfter = std::chrono::seconds(30);
  client::Answer<judge::Found> references(const std::string& name_space, const crd::Spec& spec);
  // What every router pod says. Those whose turn does not come within kAskMax are as silent.
  static constexpr Duration kAskMax = std::chrono::seconds(10);
  [[nodiscard]] std::vector<judge::RouterReport> reports(const std::vector<judge::Pod>& pods,
                                                         const std::string& token);

 private:
  client::Answer<bool> has_key(const std::string& name_space, const crd::SecretRef& secret);
  client::Answer<bool> has_claim(const object::Key& claim);

  // A Secret of a user's as it was read last.
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
  std::map<object::Key, Instant> claims_ SL_GUARDED_BY(mutex_);  // when they were seen
};

}  // namespace sightline::reconcile
