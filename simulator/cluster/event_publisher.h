// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "simulator/core/event_encoder.h"
#include "simulator/faults/event_faults.h"

namespace sightline::cluster {

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
    bool with_replay = true;         // else there is no such socket, and replay_port stays 0
    std::uint16_t replay_port = 0;
    std::string topic;
    std::uint32_t rank = 0;  // data-parallel rank, told in each batch
    core::EventFormat format;
    std::uint32_t buffer_batches = 10'000;  // kept for replay (vLLM: buffer_steps)
    faults::EventFaults* faults = nullptr;  // on the way of messages; outlives the publisher
  };

  // Bound when it returns. Errors: Unavailable naming the endpoint. The clock outlives it.
  static Result<std::unique_ptr<EventPublisher>> create(const Options& options, const Clock& clock);
  struct State;
  EventPublisher(Options options, const Clock& clock);
  ~EventPublisher();

  // Sends the events of one step; nothing if there are none.
  void publish(std::vector<core::KvEvent> events);

  // The publisher's process ends, and another one begins on the same ports: numbers from 0, nothing
  // to replay. Nothing else may be called in between, and no other thread may be in a call. Errors
  // of reopen(): as of create(); it may be tried again.
  void close();
  Result<Done> reopen();

  [[nodiscard]] bool is_open() const { return state_ != nullptr; }
  [[nodiscard]] std::uint16_t events_port() const { return options_.events_port; }
  [[nodiscard]] std::uint16_t replay_port() const { return options_.replay_port; }
  // Number of the last message; nothing: none yet.
  [[nodiscard]] std::optional<std::uint64_t> last_sequence() const;

 private:
  Options options_;  // with the ports that were bound
  const Clock& clock_;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::cluster
