// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/hosts/lookup.h"

#include "router/cache/events/event_feed.h"
#include "router/cache/subscriber/queue_watch.h"
#include "router/cache/subscriber/replay_places.h"
#include "router/cache/subscriber/zmq_endpoint.h"
#include "router/cache/subscriber/zmq_poller.h"
#include "router/cache/subscriber/zmq_socket.h"

namespace sightline::subscriber {

// Where one engine core publishes. Endpoints as libzmq writes them: "tcp://10.0.0.7:5557",
// "tcp://[fd00::7]:5557", "tcp://engine-0.ranks:5557", "ipc:///run/x.sock".
struct FeedEndpoints {
  std::string events;
  // The rank connects to us (its own endpoint holds no '*' or '::'), so we bind.
  bool bind = false;
  std::optional<std::string> replay = std::nullopt;
};

struct FollowOptions {
  // ZMQ_RCVHWM of a rank: what is not read in time waits at its publisher, of which vLLM's keeps
  // 100,000 messages.
  int receive_messages_max = 32;
  int replay_messages_max = 64;  // the same of a replay that runs
  // A larger frame closes the connection it came on.
  std::size_t frame_bytes_max = 64U << 20U;
  Heartbeat heartbeat = {};
  // Longest silence of a replay before it is given up,
  std::chrono::milliseconds replay_timeout{2000};
  // and of one that has brought something: a replay is sent in one go, so its rest was dropped.
  std::chrono::milliseconds replay_cut{500};
  // How long a replay keeps its place while others wait: without an answer, and with answers.
  std::chrono::milliseconds place_silence{250};
  std::chrono::milliseconds place_turn{2000};
  // From a connection to the replay that it makes due. A subscription takes effect a moment after
  // the connection: of what is published before, nobody would tell until the next message.
  std::chrono::milliseconds settling{200};
  // How often the name of a host that is not connected is looked up: it may have another address,
  // or several.
  std::chrono::milliseconds find_again{2000};
  // From a connection by name to the look-up that confirms its address: what was known of the name
  // may have been out of date, and the address another rank's.
  std::chrono::milliseconds confirm_after{10'000};
};

// One rank that is followed: its sockets, when something is due, and the way of its messages
// into its feed.
// Thread safety: none; opened, used and destroyed on one thread.
class Follower {
 public:
  // What the followers of one thread share; outlives them.
  struct Shared {
    void* context;
    ZmqPoller& poller;
    Multipart& message;  // scratch
    ReplayPlaces& places;
    const Clock& clock;
    const FollowOptions& options;
    // As hosts::Lookup::find(); what comes later is told by looked_up() of this rank's follower.
    std::function<hosts::Lookup::Answer(CacheId, const std::string&)> find_name = nullptr;
  };

  // Sockets are told to the poller with the tokens that read() knows.
  // An address to bind that is in use is tried again until it is free.
  // Errors: InvalidArgument, which says which endpoint libzmq refuses or cannot bind and why;
  // Internal, when the process has no sockets left.
  static Result<std::unique_ptr<Follower>> open(const Shared& shared, FeedEndpoints endpoints,
                                                events::EventFeed feed);
  // By open().
  struct Origin {
    ZmqEndpoint events;
    bool bind = false;
    ZmqEndpoint replay;
  };
  Follower(const Shared& shared, Origin origin, events::EventFeed feed);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  static CacheId engine_of(std::uint64_t token);
  // Reads the socket of this token, if it is still there.
  void read(std::uint64_t token);
  // Does what is due.
  void meet_deadline();
  // When that is; Instant::max(): nothing will be.
  [[nodiscard]] Instant deadline() const;
  void relearn(bool replay);
  // A name that it asked for has been looked up.
  void looked_up();
  // Reads what is there, so that status() tells whether all that was announced is applied: at the
  // latest by the second look, kStillFor after the first, unless more comes meanwhile.
  void look();
  // It has got a place for its replay.
  void take_place();
  // Live messages are not read while more of them cannot be kept; looks whether they can.
  [[nodiscard]] bool held_back() const { return held_back_; }
  void resume();
  // To be called every Heartbeat::interval. True: it has closed the connection.
  bool look_after_links(Duration since_last);
  // Takes its blocks out of the index, block by block: it alone remembers which they are.
  void forget() { feed_.forget(); }

  [[nodiscard]] events::FeedStatus status() const;

 private:
  void read_links();
  bool receive(void* socket);
  void leave_peer();
  void lose_events(std::chrono::milliseconds until_again);
  void come_up(bool after_unseen_loss);
  void go_down(bool will_retry);
  bool read_messages();
  void take_message();
  void read_replay();
  void take_answers();
  void meet_replay_deadlines(Instant now);
  void ask(std::optional<std::uint64_t> from);
  void send_request();
  std::optional<std::string> replay_at();
  void close_replay();
  void reopen();
  Result<Done> open_events();
  void close_events();
  [[nodiscard]] bool is_named() const { return !origin_.events.name().empty(); }
  void find_events();
  void take_addresses(const std::vector<asio::ip::address>& found);
  void leave_address();
  void move_to(const asio::ip::address& address);

  const Shared shared_;
  const Origin origin_;
  const CacheId cache_;
  events::EventFeed feed_;
  std::optional<EventsSocket> events_;
  bool address_in_use_ = false;
  // Of events by name:
  std::optional<asio::ip::address> address_;                        // at which they are awaited
  Instant tried_since_{};                                           // while not connected
  hosts::LookupFailure name_trouble_ = hosts::LookupFailure::None;  // why there is none
  std::optional<Instant> find_at_;                                  // to look their host's name up
  bool is_finding_ = false;                                         // that is under way
  ZmqSocket replay_;                                                // while a replay runs
  QueueWatch queue_;
  std::optional<std::uint64_t> ask_from_;
  std::optional<Instant> ask_at_;           // to send the request
  std::optional<Instant> replay_deadline_;  // to give the replay up, if it is silent
  std::optional<Instant> place_until_;      // to leave its place to others
  bool answered_ = false;                   // the replay has said something
  std::optional<Instant> reopen_at_;
  Instant heard_at_{};       // the last message came
  Instant settled_at_{};     // from then on the subscription has effect
  std::uint32_t peers_ = 0;  // connections that are up; more than one on a bound socket only
  bool connected_before_ = false;
  std::uint64_t connections_lost_ = 0;
  std::uint64_t overruns_ = 0;
  std::uint64_t wire_bytes_taken_ = 0;  // of the events socket
  bool held_back_ = false;
};

}  // namespace sightline::subscriber
