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
#include "router/replicas/membership/member_exchange.h"
#include "router/replicas/membership/members.h"

namespace sightline::membership {

// Announces this process, and receives the announcements of its scope, also of other revisions. It
// has its own thread, sl-members.
// Thread safety: all methods from any thread, stop() from one.
class Membership {
 public:
  // The objects that it uses. All outlive it. The connection must send each message immediately.
  struct Deps {
    nats::Connection& connection;
    const envelope::Sealer& sealer;  // see MemberExchange
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  // Starts the thread, which announces `mine` from now on.
  Membership(const Announcement& mine, const Deps& deps, MemberExchangeOptions options = {});
  ~Membership();  // calls stop()
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Changes the announcement, soon after the return. `change` runs under a lock, so it must be
  // quick. Role, instance, scope and revision stay as they are.
  void update(const std::function<void(Announcement&)>& change);

  // What this process announces.
  [[nodiscard]] Announcement mine() const;
  // The other processes at this moment.
  [[nodiscard]] std::vector<Member> members() const;
  // The generations of the worker lists that fitting routers announce.
  [[nodiscard]] std::set<std::uint64_t> generations() const;
  // As Members::json().
  [[nodiscard]] std::string json() const;

  // Announces the end of the process, and ends the thread. May be called twice.
  void stop();

 private:
  // The thread and what it shares with callers.
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::membership
