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

// Where one engine core publishes. Endpoints have libzmq's form: "tcp://10.0.0.7:5557",
// "tcp://[fd00::7]:5557", "tcp://engine-0.ranks:5557", "ipc:///run/x.sock".
struct FeedEndpoints {
  std::string events;
  // The rank connects to the router, because its own endpoint has no '*' or '::'. So the router
  // binds.
  bool bind = false;
  std::optional<std::string> replay = std::nullopt;
};

// Limits and times of a follower.
struct FollowOptions {
  // ZMQ_RCVHWM of a rank. Messages that are not read in time wait at the publisher. vLLM's
  // publisher keeps 100,000 messages.
  int receive_messages_max = 32;
  int replay_messages_max = 64;  // the same for a running replay
  // A larger frame closes its connection.
  std::size_t frame_bytes_max = 64U << 20U;
  Heartbeat heartbeat = {};
  // The longest silence of a replay before the follower ends it.
  std::chrono::milliseconds replay_timeout{2000};
  // The same for a replay that has brought something. A replay is sent in one go, so the rest of
  // its answers was dropped.
  std::chrono::milliseconds replay_cut{500};
  // How long a replay keeps its place while others wait: without an answer, and with answers.
  std::chrono::milliseconds place_silence{250};
  std::chrono::milliseconds place_turn{2000};
  // The time from a connection to the replay request after it. A subscription takes effect a moment
  // after the connection. Without this pause, messages from before that moment would be missing in
  // both. The next message would be the first to show the gap.
  std::chrono::milliseconds settling{200};
  // How often the host name of a rank without a connection is looked up. The name may have another
  // address, or several.
  std::chrono::milliseconds find_again{2000};
  // The time from a connection by name to the look-up that confirms its address. The known address
  // may have been out of date and belong to another rank.
  std::chrono::milliseconds confirm_after{10'000};
};

// Follows one rank: its sockets, its deadlines, and the way of its messages into its feed.
// Thread safety: one thread opens, uses and destroys it.
class RankConnection {
 public:
  // What the followers of one thread share. It outlives them.
  struct Deps {
    void* context;
    ZmqPoller& poller;
    Multipart& message;  // scratch
    ReplayPlaces& places;
    const Clock& clock;
    const FollowOptions& options;
    // Has the contract of hosts::Lookup::find(). A later result leads to looked_up() of this rank's
    // follower.
    std::function<hosts::Lookup::LookupState(CacheId, const std::string&)> find_name = nullptr;
  };

  // Opens the sockets. The poller gets them with the tokens that read() accepts. If an address to
  // bind is in use, the follower tries again until it is free. Errors: InvalidArgument, which says
  // which endpoint libzmq refuses or cannot bind and why. Internal, if the process has no sockets
  // left.
  static Result<std::unique_ptr<RankConnection>> open(const Deps& shared, FeedEndpoints endpoints,
                                                      events::EventFeed feed);
  // The parsed endpoints, from open().
  struct Origin {
    ZmqEndpoint events;
    bool bind = false;
    ZmqEndpoint replay;
  };
  RankConnection(const Deps& shared, Origin origin, events::EventFeed feed);
  ~RankConnection();
  RankConnection(const RankConnection&) = delete;
  RankConnection& operator=(const RankConnection&) = delete;

  // Returns the cache of a token.
  static CacheId engine_of(std::uint64_t token);
  // Reads the socket of this token, if it still exists.
  void read(std::uint64_t token);
  // Performs the actions that are due.
  void meet_deadline();
  // Returns when the next action is due. Instant::max() if no action is due.
  [[nodiscard]] Instant deadline() const;
  // Loads the rank's blocks again, from a replay or from the next message on.
  void relearn(bool replay);
  // The look-up of a name that the follower asked for has ended.
  void looked_up();
  // Reads waiting messages, so status() can say whether all announced events are applied. The
  // second look, kStillFor after the first, decides at the latest, unless more messages come
  // between.
  void look();
  // The follower has got a place for its replay.
  void take_place();
  // Returns true if live messages are not read because no more of them can be kept. resume() reads
  // again if they can be kept.
  [[nodiscard]] bool held_back() const { return held_back_; }
  void resume();
  // Call this every Heartbeat::interval. Returns true if it closed the connection.
  bool look_after_links(Duration since_last);
  // Removes the rank's blocks from the index, one by one. Only the feed remembers which blocks
  // these are.
  void forget() { feed_.forget(); }

  [[nodiscard]] events::FeedStatus status() const;

 private:
  // Handles the reports about the connections of the events socket.
  void read_links();
  // Receives one message into the scratch, and counts its bytes.
  bool receive(void* socket);
  // One connection is lost. A running replay ends with it.
  void leave_peer();
  void lose_events(std::chrono::milliseconds until_again);
  // A connection is up. A replay request follows after `settling`.
  void come_up(bool after_unseen_loss);
  // A connection is lost. libzmq connects again on its own if will_retry.
  void go_down(bool will_retry);
  bool read_messages();
  void take_message();
  void read_replay();
  void take_answers();
  void meet_replay_deadlines(Instant now);
  // Plans a replay request, if there is a number to request from.
  void ask(std::optional<std::uint64_t> from);
  void send_request();
  std::optional<std::string> replay_at();
  void close_replay();
  // Opens the events socket again, or looks up its host name first.
  void reopen();
  Result<Done> open_events();
  void close_events();
  [[nodiscard]] bool is_named() const { return !origin_.events.name().empty(); }
  void find_events();
  void take_addresses(const std::vector<asio::ip::address>& found);
  void leave_address();
  // Leaves the present address and connects to another one of the name.
  void move_to(const asio::ip::address& address);

  const Deps shared_;
  const Origin origin_;
  const CacheId cache_;
  events::EventFeed feed_;
  std::optional<EventsSocket> events_;
  bool address_in_use_ = false;
  // For events by name:
  std::optional<asio::ip::address> address_;  // where the connection is expected.
  Instant tried_since_{};                     // while not connected.
  hosts::LookupFailure name_trouble_ = hosts::LookupFailure::None;  // why there is no address.
  std::optional<Instant> find_at_;  // when to look up the host name.
  bool is_finding_ = false;         // a look-up is running.
  ZmqSocket replay_;                // only while a replay runs.
  QueueWatch queue_;
  std::optional<std::uint64_t> ask_from_;
  std::optional<Instant> ask_at_;           // when to send the request.
  std::optional<Instant> replay_deadline_;  // when to end a silent replay.
  std::optional<Instant> place_until_;      // when to leave its place to others.
  bool answered_ = false;                   // the replay has sent an answer.
  std::optional<Instant> reopen_at_;
  Instant heard_at_{};       // of the last message.
  Instant settled_at_{};     // from then on the subscription has effect.
  std::uint32_t peers_ = 0;  // connections that are up, more than one only on a bound socket.
  bool connected_before_ = false;
  std::uint64_t connections_lost_ = 0;
  std::uint64_t overruns_ = 0;
  std::uint64_t wire_bytes_taken_ = 0;  // of the events socket.
  bool held_back_ = false;
};

}  // namespace sightline::subscriber
