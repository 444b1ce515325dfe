// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/events/engine_feed.h"
#include "router/subscriber/zmq_poller.h"
#include "router/subscriber/zmq_socket.h"

namespace sightline::subscriber {

// Where one engine core publishes. Endpoints as libzmq writes them: "tcp://10.0.0.7:5557",
// "tcp://[fd00::7]:5557", "ipc:///run/x.sock".
struct EngineEndpoints {
  std::string events;
  // The engine connects to us (its own endpoint holds no '*' or '::'), so we bind.
  bool bind = false;
  std::optional<std::string> replay = std::nullopt;
};

struct FollowOptions {
  int receive_messages_max = 100'000;  // ZMQ_RCVHWM per engine; vLLM's own send limit
  // A larger frame closes the connection it came on.
  std::size_t frame_bytes_max = 64U << 20U;
  Heartbeat heartbeat = {};
  // Longest silence of a replay before it is given up.
  std::chrono::milliseconds replay_timeout{2000};
  // From a connection to the replay that it makes due. A subscription takes effect a moment after
  // the connection: of what is published before, nobody would tell until the next message.
  std::chrono::milliseconds settling{200};
};

// One engine that is followed: its sockets, when something is due, and the way of its messages
// into its feed.
// Thread safety: none; opened, used and destroyed on one thread.
class Follower {
 public:
  // What the followers of one thread share; outlives them.
  struct Shared {
    void* context;
    ZmqPoller& poller;
    Multipart& message;  // scratch
    const Clock& clock;
    const FollowOptions& options;
  };

  // Sockets are told to the poller with the tokens that read() knows.
  // An address to bind that is in use is tried again until it is free.
  // Errors: InvalidArgument, which says which endpoint libzmq refuses or cannot bind and why;
  // Internal, when the process has no sockets left.
  static Result<std::unique_ptr<Follower>> open(const Shared& shared, EngineEndpoints endpoints,
                                                events::EngineFeed feed);
  Follower(const Shared& shared, EngineEndpoints endpoints, events::EngineFeed feed,
           std::optional<EventsSocket> events);  // by open(); none: its address is in use
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  static EngineId engine_of(std::uint64_t token);
  // Reads the socket of this token, if it is still there.
  void read(std::uint64_t token);
  // Does what is due.
  void meet_deadline();
  // When that is; Instant::max(): nothing will be.
  [[nodiscard]] Instant deadline() const;
  void relearn(bool replay);
  // Takes its blocks out of the index, block by block: it alone remembers which they are.
  void forget() { feed_.forget(); }

  [[nodiscard]] events::EngineStatus status() const;

 private:
  void read_links();
  void come_up(bool after_unseen_loss);
  void go_down(bool will_retry);
  bool read_messages();
  void read_replay();
  void ask(std::optional<std::uint64_t> from);
  void send_request();
  void close_replay();
  void reopen();
  void watch_events() const;
  void close_events();

  const Shared shared_;
  const EngineEndpoints endpoints_;
  const EngineId engine_;
  events::EngineFeed feed_;
  std::optional<EventsSocket> events_;
  bool address_in_use_;
  ZmqSocket replay_;  // while a replay runs
  std::optional<std::uint64_t> ask_from_;
  std::optional<Instant> ask_at_;           // to send the request
  std::optional<Instant> replay_deadline_;  // to give the replay up
  std::optional<Instant> reopen_at_;
  Instant settled_at_{};     // from then on the subscription has effect
  std::uint32_t peers_ = 0;  // connections that are up; more than one on a bound socket only
  bool connected_before_ = false;
  std::uint64_t connections_lost_ = 0;
};

}  // namespace sightline::subscriber
