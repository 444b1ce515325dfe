// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "common/base/clock.h"
#include "common/contract/subjects.h"
#include "common/nats/connection.h"
#include "common/runtime/metrics.h"

#include "router/replicas/envelope/envelope.h"
#include "router/replicas/lists_exchange/exchange.h"

namespace sightline::lists_exchange {

// Brings the newest pushed list of workers from replica to replica over NATS. One thread of its
// own, sl-lists.
// Thread safety: own_changed() from any thread, stop() from one.
class ListsExchange {
 public:
  // All outlive it; the connection is one that sends at once.
  struct Around {
    nats::Connection& connection;
    const envelope::Sealer& sealer;
    const contract::Subjects& subjects;
    std::uint64_t instance;  // of this process
    std::uint64_t seed;      // of what questions are known by: nobody can guess it
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  // Called on its thread.
  struct Hooks {
    // The list that is held here.
    std::function<Own()> own;
    // The generations that fitting replicas announce.
    std::function<std::set<std::uint64_t>()> announced;
    // A peer's list, as it was pushed there: to be judged and taken.
    std::function<void(std::string body)> offer;
    // Once: no peer has had a list in time.
    std::function<void()> does_without;
  };
  ListsExchange(const Around& around, Hooks hooks, ExchangeOptions options = {});
  ~ListsExchange();  // as stop()
  ListsExchange(const ListsExchange&) = delete;
  ListsExchange& operator=(const ListsExchange&) = delete;

  // A list was pushed here.
  void own_changed();
  // Ends the thread. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::lists_exchange
