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
#include "router/replicas/lists_exchange/list_exchange.h"

namespace sightline::lists_exchange {

// Brings the newest pushed list of workers from replica to replica over NATS. It has its own
// thread, sl-lists.
// Thread safety: own_changed() from any thread, stop() from one.
class ListsExchange {
 public:
  // The objects that it uses. All outlive it. The connection must send each message immediately.
  struct Deps {
    nats::Connection& connection;
    const envelope::Sealer& sealer;
    const contract::Subjects& subjects;
    // Of this process.
    std::uint64_t instance;
    // Of the questions' nonces. No other process can guess it.
    std::uint64_t seed;
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  // Called on its thread.
  struct Hooks {
    // Returns the present list.
    std::function<Own()> own;
    // Returns the generations that fitting replicas announce.
    std::function<std::set<std::uint64_t>()> announced;
    // Passes a peer's list, as it was pushed there. The callee decides whether it takes it.
    std::function<void(std::string body)> offer;
    // Called once, if no peer has sent a list in time.
    std::function<void()> does_without;
  };
  // Starts the thread.
  ListsExchange(const Deps& deps, Hooks hooks, ListExchangeOptions options = {});
  ~ListsExchange();  // calls stop()
  ListsExchange(const ListsExchange&) = delete;
  ListsExchange& operator=(const ListsExchange&) = delete;

  // A list was pushed here. The thread reads it by Hooks::own soon.
  void own_changed();
  // Ends the thread. May be called twice.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::lists_exchange
