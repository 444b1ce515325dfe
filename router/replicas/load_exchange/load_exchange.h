// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/contract/subjects.h"
#include "common/nats/connection.h"
#include "common/runtime/metrics.h"

#include "router/replicas/envelope/envelope.h"
#include "router/replicas/load/load_message.h"
#include "router/replicas/load/others_load.h"
#include "router/replicas/load/own_load.h"
#include "router/replicas/load/taken_names.h"
#include "router/replicas/load_exchange/load_queue.h"
#include "router/workers/fleet/load_book.h"

namespace sightline::load_exchange {

// Called with the reservations that other routers have taken over. The bookings here under these
// numbers, up to these attempts, end. It runs on sl-load without a lock and must return quickly.
using Supersede = std::function<void(const std::vector<load::ReservationName>&)>;

// Returns whether a takeover from the queue may still count here. False: another router's takeover
// has ended it in the meantime, so it must not be sent as the later one. It runs on sl-load without
// a lock.
using Stands = std::function<bool(const load::ReservationName&)>;

// The options of the three parts, and the two calls.
struct LoadExchangeOptions {
  load::OwnOptions own = {};
  load::OthersOptions others = {};
  load::TakenOptions taken = {};
  Supersede supersede = {};
  // Empty: all takeovers count.
  Stands stands = {};
};

// Sends to the other routers what this one has booked, and sets in the load book what they have. It
// has its own thread, sl-load.
// Thread safety: all methods from any thread, stop() from one.
class LoadExchange {
 public:
  // This router.
  struct Me {
    // Random, drawn at the start.
    std::uint64_t instance = 0;
    // For people.
    std::string name;
  };
  // The objects that it uses. All outlive it. The connection must send each message immediately.
  // The queue is the one that the load book's observer fills.
  struct Deps {
    nats::Connection& connection;
    const envelope::Sealer& sealer;
    const contract::Subjects& subjects;
    fleet::LoadBook& book;
    std::shared_ptr<LoadQueue> queue;
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  // Starts the thread, which subscribes and asks the other routers for their totals.
  LoadExchange(const Me& me, const Deps& deps, LoadExchangeOptions options = {});
  ~LoadExchange();  // calls stop()
  LoadExchange(const LoadExchange&) = delete;
  LoadExchange& operator=(const LoadExchange&) = delete;

  // The state as JSON: {"instance", "ranks": the number of ranks with work of this router,
  // "sources": as OthersLoad::json()}.
  [[nodiscard]] std::string json() const;
  // The number of other routers whose load counts.
  [[nodiscard]] std::size_t sources() const;

  // Announces that nothing is booked here any more, ends the thread and removes the others' load
  // from the book. May be called twice.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::load_exchange
