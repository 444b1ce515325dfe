// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/events/engine_feed.h"

namespace sightline::events {

// Where one engine core publishes. Endpoints as libzmq writes them: "tcp://10.0.0.7:5557",
// "tcp://[fd00::7]:5557", "ipc:///run/x.sock".
struct EngineEndpoints {
  std::string events;
  // The engine connects to us (its own endpoint holds no '*' or '::'), so we bind.
  bool bind = false;
  std::optional<std::string> replay = std::nullopt;
};

struct SubscriberOptions {
  int receive_messages_max = 100'000;  // ZMQ_RCVHWM per engine; vLLM's own send limit
  // A larger frame closes the connection it came on.
  std::size_t frame_bytes_max = 64U << 20U;
  // Longest silence of a replay before it is given up.
  std::chrono::milliseconds replay_timeout{2000};
  StreamOptions stream = {};
};

// Reads the KV events of many engines into an index: ZMQ SUB per engine, and a DEALER while a
// replay runs. One thread of its own does all of it.
//
// Thread safety: all methods from any thread. Scheme, index and clock outlive it.
class EventSubscriber {
  struct State;

 public:
  // Errors: Internal, when the process has no file descriptors or threads left.
  static Result<std::unique_ptr<EventSubscriber>> create(const SubscriberOptions& options,
                                                         const keys::Scheme& scheme,
                                                         index::PrefixIndex& index,
                                                         const Clock& clock);
  explicit EventSubscriber(std::unique_ptr<State> state);  // by create()
  ~EventSubscriber();
  EventSubscriber(const EventSubscriber&) = delete;
  EventSubscriber& operator=(const EventSubscriber&) = delete;

  // Starts to follow an engine; it need not be up yet. engine.engine must not be followed already.
  // Errors: InvalidArgument, which says which endpoint libzmq refuses or cannot bind and why.
  Result<Done> add(const EngineEndpoints& endpoints, NormaliserOptions engine);
  // Stops following it and drops it from the index, soon after the return. Unknown: nothing.
  void remove(EngineId engine);

  // State of one engine after its last message; nothing when it is not followed.
  [[nodiscard]] std::optional<EngineStatus> status(EngineId engine) const;
  // Of all engines, in the order of their ids.
  [[nodiscard]] std::vector<EngineStatus> statuses() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::events
