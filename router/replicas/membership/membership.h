// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/nats/connection.h"
#include "common/runtime/metrics.h"

#include "router/replicas/membership/announcement.h"
#include "router/replicas/membership/exchange.h"
#include "router/replicas/membership/members.h"

namespace sightline::membership {

// Announces this process and hears the others of its scope, those of other revisions included. One
// thread of its own, sl-members.
// Thread safety: all methods from any thread; stop() from one.
class Membership {
 public:
  // All outlive it; the connection is one that sends at once.
  struct Around {
    nats::Connection& connection;
    const envelope::Sealer& sealer;  // as Exchange
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  Membership(const Announcement& mine, const Around& around, ExchangeOptions options = {});
  ~Membership();  // as stop()
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Changes what is announced, soon after the return. `change` runs under a lock. Role, instance,
  // scope and revision stay as they are.
  void update(const std::function<void(Announcement&)>& change);

  [[nodiscard]] Announcement mine() const;
  [[nodiscard]] std::vector<Member> members() const;
  // Of lists of workers, that routers which fit announce.
  [[nodiscard]] std::set<std::uint64_t> generations() const;
  // As Members::json().
  [[nodiscard]] std::string json() const;

  // Says that the process leaves, and ends the thread. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::membership
