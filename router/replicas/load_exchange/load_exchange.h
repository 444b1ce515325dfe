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
#include "router/replicas/load/message.h"
#include "router/replicas/load/others_load.h"
#include "router/replicas/load/own_load.h"
#include "router/replicas/load/taken_names.h"
#include "router/replicas/load_exchange/load_queue.h"
#include "router/workers/fleet/load_book.h"

namespace sightline::load_exchange {

// Told which reservations other routers have taken: what is booked here under these numbers, up to
// these attempts, ends. Called on sl-load without a lock; it returns at once.
using Supersede = std::function<void(const std::vector<load::ReservationName>&)>;

// Whether what was put into the queue as taken may still count here. False: what another router
// took has ended it since, so it must not be sent as the later one. Called likewise.
using Stands = std::function<bool(const load::ReservationName&)>;

struct ExchangeOptions {
  load::OwnOptions own = {};
  load::OthersOptions others = {};
  load::TakenOptions taken = {};
  Supersede supersede = {};
  Stands stands = {};  // empty: all of them
};

// Tells the other routers what this one has booked, and the book what they have. One thread of its
// own, sl-load.
// Thread safety: all methods from any thread; stop() from one.
class LoadExchange {
 public:
  struct Me {
    std::uint64_t instance = 0;  // drawn at start
    std::string name;            // for people
  };
  // All outlive it; the connection is one that sends at once. The queue is the one that the book's
  // observer fills.
  struct Around {
    nats::Connection& connection;
    const envelope::Sealer& sealer;
    const contract::Subjects& subjects;
    fleet::LoadBook& book;
    std::shared_ptr<LoadQueue> queue;
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  LoadExchange(const Me& me, const Around& around, ExchangeOptions options = {});
  ~LoadExchange();  // as stop()
  LoadExchange(const LoadExchange&) = delete;
  LoadExchange& operator=(const LoadExchange&) = delete;

  // {"instance","ranks": with work of ours,"sources": as OthersLoad::json()}.
  [[nodiscard]] std::string json() const;
  // The other routers that count.
  [[nodiscard]] std::size_t sources() const;

  // Says that nothing is booked here any more, and ends the thread; what others told ends in the
  // book too. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::load_exchange
