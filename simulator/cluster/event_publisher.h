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

// Publishes one engine's batches of events as vLLM 0.32 does.
// - Events: a PUB socket with the frames [topic][sequence, 8 bytes big-endian][payload]. Sequence
//   numbers begin with 0.
// - Replay: a ROUTER socket that sends buffered batches again. A request is [empty][start
//   sequence]. Anything else gets no answer. The answer is one message per batch, and then one
//   message whose sequence is eight bytes 0xff.
//
// Thread safety: one thread at a time may call publish(). Replays are served on a thread of its
// own.
class EventPublisher {
 public:
  // The settings of a publisher.
  struct Options {
    // The numeric address to bind.
    std::string host = "127.0.0.1";
    std::uint16_t events_port = 0;  // 0: any free port
    // False: the socket does not exist, and replay_port stays 0.
    bool with_replay = true;
    std::uint16_t replay_port = 0;
    std::string topic;
    // The data-parallel rank, which each batch contains.
    std::uint32_t rank = 0;
    core::EventFormat format;
    // Batches that are kept for replays (vLLM: buffer_steps).
    std::uint32_t buffer_batches = 10'000;
    // Faults of messages, or null. It must live longer.
    faults::EventFaults* faults = nullptr;
  };

  // Creates a publisher and binds its sockets. Errors: Unavailable with the endpoint. The clock
  // must live longer.
  static Result<std::unique_ptr<EventPublisher>> create(const Options& options, const Clock& clock);
  struct State;
  EventPublisher(Options options, const Clock& clock);
  ~EventPublisher();

  // Sends the events of one step. Does nothing without events.
  void publish(std::vector<core::KvEvent> events);

  // close() ends the publisher's process. reopen() starts another one on the same ports, with
  // sequence numbers from 0 and nothing to replay. No other method may be called between the two,
  // and no other thread may be in a call. Errors of reopen(): as create(). A caller may try again.
  void close();
  Result<Done> reopen();

  [[nodiscard]] bool is_open() const { return state_ != nullptr; }
  [[nodiscard]] std::uint16_t events_port() const { return options_.events_port; }
  [[nodiscard]] std::uint16_t replay_port() const { return options_.replay_port; }
  // Returns the sequence number of the last message, or nothing before the first one.
  [[nodiscard]] std::optional<std::uint64_t> last_sequence() const;

 private:
  // Contains the ports that were bound.
  Options options_;
  const Clock& clock_;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::cluster
