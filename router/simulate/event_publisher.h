// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/simengine/event_encoder.h"

namespace sightline::simulate {

// Publishes one engine's batches as vLLM 0.32 does: a PUB socket with frames [topic][sequence, 8
// bytes big-endian][payload], sequences from 0, and a ROUTER socket that sends buffered batches
// again. A request there is [empty][start sequence]; anything else gets no answer. The answer is
// one message per batch, then one whose sequence is eight 0xff bytes.
// Thread safety: publish() from one thread at a time; replays are served on a thread of its own.
class EventPublisher {
 public:
  struct Options {
    std::string host = "127.0.0.1";  // numeric address to bind
    std::uint16_t events_port = 0;   // 0: any free port
    std::uint16_t replay_port = 0;
    std::string topic;
    simengine::EventFormat format;
    std::uint32_t buffer_batches = 10'000;  // kept for replay (vLLM: buffer_steps)
  };

  // Bound when it returns. Errors: Unavailable naming the endpoint. The clock outlives it.
  static Result<std::unique_ptr<EventPublisher>> create(const Options& options, const Clock& clock);
  struct State;
  explicit EventPublisher(std::unique_ptr<State> state);
  ~EventPublisher();

  // Sends the events of one step; nothing if there are none.
  void publish(const std::vector<simengine::KvEvent>& events);

  [[nodiscard]] std::uint16_t events_port() const;
  [[nodiscard]] std::uint16_t replay_port() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::simulate
