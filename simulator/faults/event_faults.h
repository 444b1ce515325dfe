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

#include "simulator/core/published_event.h"
#include "simulator/faults/fault_plan.h"

namespace sightline::faults {

// One message of an engine's event publisher.
struct EventMessage {
  std::uint64_t sequence = 0;
  std::shared_ptr<const Bytes> payload;
};

// Delivers an engine's event messages to its subscribers, with the faults of the plan.
//
// Not thread-safe: use it on the engine's thread, which must have ended before the destruction.
class EventFaults {
 public:
  using Send = std::function<void(const EventMessage&)>;

  // All arguments must live longer.
  EventFaults(asio::io_context& context, FaultPlan& plan, const Clock& clock);

  // Changes the content of a message.
  void distort(std::uint64_t sequence, std::vector<core::KvEvent>& events);
  // Sends the message now, later, twice or never. May replace the payload. Returns false if a
  // replay must not send it either.
  bool deliver(EventMessage& message, const Send& send);
  // Returns true if the next replay must be truncated.
  bool cuts_replay(std::uint64_t sequence);
  // Sends the messages that are held back.
  void flush();
  // The engine restarts. Messages that are held back are lost.
  void forget();

  // The highest sequence number sent since the restart.
  [[nodiscard]] std::optional<std::uint64_t> delivered() const { return delivered_; }

 private:
  struct DelayedMessage {
    Instant due;
    EventMessage message;
  };
  void enqueue(const EventMessage& message, Duration delay);
  void send_due();
  void send_now(const EventMessage& message);
  // Removes the parts of a block, except for the part with the block's own hash.
  void tell_other_parts(const core::BlockHash& gone, std::vector<core::KvEvent>& told);

  FaultPlan& plan_;
  const Clock& clock_;
  asio::steady_timer timer_;
  Send send_;
  // In the order of sending.
  std::deque<DelayedMessage> queue_;
  // Sent after the next message.
  std::optional<EventMessage> held_;
  std::optional<std::uint64_t> delivered_;
  bool wrong_block_size_ = false;
  // Blocks that were announced as smaller parts, with the number of parts. A block with several
  // copies occurs several times.
  std::multimap<core::BlockHash, std::uint32_t> parts_told_;
  // A callback of the timer uses it to check that its owner exists and has not restarted.
  std::shared_ptr<std::uint64_t> life_ = std::make_shared<std::uint64_t>(0);
};

// Changes an event as if the engine had smaller blocks. Each block is cut into the fewest equal
// parts that its size allows. Blocks of one token stay.
void tell_smaller_blocks(core::BlockStored& event);

}  // namespace sightline::faults
