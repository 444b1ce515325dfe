// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "common/base/bytes.h"
#include "common/base/clock.h"

#include "simulator/core/kv_event.h"
#include "simulator/faults/fault_plan.h"

namespace sightline::faults {

// One message of an engine's event publisher.
struct EventMessage {
  std::uint64_t sequence = 0;
  std::shared_ptr<const Bytes> payload;
};

// The way of an engine's event messages to its subscribers, with the plan's faults on it.
// Thread safety: none; on the engine's thread, which must have ended before it is destroyed.
class EventFaults {
 public:
  using Send = std::function<void(const EventMessage&)>;

  // context, plan and clock outlive it.
  EventFaults(asio::io_context& context, FaultPlan& plan, const Clock& clock);

  // Changes what a message is going to say.
  void distort(std::uint64_t sequence, std::vector<core::KvEvent>& events);
  // Sends the message now, later, twice or never. False: it must not be replayed either. The
  // payload may be replaced.
  bool deliver(EventMessage& message, const Send& send);
  // True if the next replay is to be cut short.
  bool cuts_replay(std::uint64_t sequence);
  // Sends what is kept back.
  void flush();
  // The engine restarts: what is kept back is lost.
  void forget();

  // Highest number sent since the restart.
  [[nodiscard]] std::optional<std::uint64_t> delivered() const { return delivered_; }

 private:
  struct Waiting {
    Instant due;
    EventMessage message;
  };
  void enqueue(const EventMessage& message, Duration delay);
  void send_due();
  void send_now(const EventMessage& message);
  // Withdraws what a block was cut into, all but the part that has its hash.
  void tell_other_parts(const core::BlockHash& gone, std::vector<core::KvEvent>& told);

  FaultPlan& plan_;
  const Clock& clock_;
  asio::steady_timer timer_;
  Send send_;
  std::deque<Waiting> queue_;         // in order of sending
  std::optional<EventMessage> held_;  // goes out after the next one
  std::optional<std::uint64_t> delivered_;
  bool wrong_block_size_ = false;
  // Copies of blocks that were announced as smaller ones, and as how many.
  std::multimap<core::BlockHash, std::uint32_t> parts_told_;
  // Tells a timer's callback whether its owner is still there, and at the same life.
  std::shared_ptr<std::uint64_t> life_ = std::make_shared<std::uint64_t>(0);
};

// The event as an engine with smaller blocks would tell it: each block cut into as few equal parts
// as its size allows. Blocks of one token stay.
void tell_smaller_blocks(core::BlockStored& event);

}  // namespace sightline::faults
