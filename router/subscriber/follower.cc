// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/subscriber/follower.h"

#include <algorithm>
#include <utility>

namespace sightline::subscriber {

namespace {

// How much of one socket is read before the others have their turn.
class Turn {
 public:
  [[nodiscard]] bool over() const { return messages_ >= kMessagesMax || bytes_ >= kBytesMax; }
  void count(const Multipart& message) {
    ++messages_;
    bytes_ += message.bytes();
  }

 private:
  static constexpr int kMessagesMax = 256;
  static constexpr std::size_t kBytesMax = 4U << 20U;  // with the message that passes it
  int messages_ = 0;
  std::size_t bytes_ = 0;
};

// Of a replay: its answers must not be lost.
constexpr int kReplayMessagesMax = 100'000;
// libzmq gives a connection up for good when the peer breaks the protocol or a limit. A bound
// socket whose last peer is lost may still have it, where another one's loss was told for its:
// opened anew it hears of all that are there.
constexpr std::chrono::seconds kReopenAfter{1};

// Sockets of a follower: the low bits of their tokens, above which stands the engine.
enum Part : std::uint64_t { kLinks, kMessages, kReplay, kParts };

std::uint64_t token_of(EngineId engine, Part part) {
  return std::uint64_t{engine.value} * kParts + part;
}

Result<EventsSocket> open_events(const Follower::Shared& shared, const EngineEndpoints& endpoints) {
  return EventsSocket::open(shared.context, endpoints.events, endpoints.bind,
                            {shared.options.receive_messages_max, shared.options.frame_bytes_max,
                             shared.options.heartbeat});
}

Result<ZmqSocket> open_replay(const Follower::Shared& shared, const EngineEndpoints& endpoints) {
  return open_replay_socket(shared.context, *endpoints.replay,
                            {kReplayMessagesMax, shared.options.frame_bytes_max});
}

}  // namespace

Result<std::unique_ptr<Follower>> Follower::open(const Shared& shared, EngineEndpoints endpoints,
                                                 events::EngineFeed feed) {
  // A bad replay endpoint is refused now rather than at the first gap.
  if (endpoints.replay) SL_TRY(open_replay(shared, endpoints));
  auto socket = open_events(shared, endpoints);
  std::optional<EventsSocket> events;
  if (socket.ok()) {
    events = std::move(*socket);
  } else if (socket.error().code != ErrorCode::Unavailable) {
    return std::move(socket).error();
  }
  return std::make_unique<Follower>(shared, std::move(endpoints), std::move(feed),
                                    std::move(events));
}

Follower::Follower(const Shared& shared, EngineEndpoints endpoints, events::EngineFeed feed,
                   std::optional<EventsSocket> events)
    : shared_(shared),
      endpoints_(std::move(endpoints)),
      engine_(feed.status().engine),
      feed_(std::move(feed)),
      events_(std::move(events)),
      address_in_use_(!events_) {
  if (events_) {
    watch_events();
  } else {
    reopen_at_ = shared_.clock.now() + kReopenAfter;
  }
}

Follower::~Follower() {
  close_replay();
  close_events();
}

EngineId Follower::engine_of(std::uint64_t token) {
  return {static_cast<std::uint32_t>(token / kParts)};
}

void Follower::watch_events() const {
  shared_.poller.watch(events_->links(), token_of(engine_, kLinks));
  shared_.poller.watch(events_->messages(), token_of(engine_, kMessages));
}

void Follower::close_events() {
  if (!events_) return;
  shared_.poller.forget(events_->links());
  shared_.poller.forget(events_->messages());
  events_.reset();
}

void Follower::read(std::uint64_t token) {
  if (token % kParts == kReplay) {
    read_replay();
    return;
  }
  if (!events_) return;
  // A connection is known before the messages that came over it.
  read_links();
  if (token % kParts == kMessages && read_messages()) {
    shared_.poller.look_again(token);
  }
}

void Follower::read_links() {
  bool lost_unseen = false;
  while (const auto event = events_->next_link_event()) {
    if (*event == LinkEvent::Rejected) continue;
    if (*event == LinkEvent::Up) {
      ++peers_;
      come_up(std::exchange(lost_unseen, false));
      continue;
    }
    lost_unseen |= peers_ > 0;
    go_down(*event == LinkEvent::Retrying);
    // Which of its peers a bound socket has left is unknown, and their messages may be mixed.
    if (peers_ > 0) come_up(std::exchange(lost_unseen, false));
  }
}

void Follower::go_down(bool will_retry) {
  reopen_at_.reset();
  if (!will_retry) reopen_at_ = shared_.clock.now() + kReopenAfter;
  if (peers_ == 0) return;
  --peers_;
  ++connections_lost_;
  close_replay();
  ask_at_.reset();
  // What came over the lost connection must not be taken for the next one's. Beyond a turn it is
  // left to the replay; a bound socket may have a peer that goes on sending.
  read_messages();
  for (int i = 0; i < shared_.options.receive_messages_max; ++i) {
    if (!shared_.message.receive(events_->messages())) return;
  }
}

// after_unseen_loss: the connection before was lost since we last looked, so that messages of both
// may just have been read.
void Follower::come_up(bool after_unseen_loss) {
  reopen_at_.reset();
  settled_at_ = shared_.clock.now() + shared_.options.settling;
  if (!std::exchange(connected_before_, true)) {
    ask(feed_.start());
  } else {
    ask(feed_.reconnected(!after_unseen_loss, shared_.clock.wall()));
  }
}

// True if there may be more.
bool Follower::read_messages() {
  for (Turn turn; !turn.over(); turn.count(shared_.message)) {
    if (!shared_.message.receive(events_->messages())) return false;
    ask(feed_.live(shared_.message.frames(), shared_.clock.wall()));
  }
  return true;
}

void Follower::read_replay() {
  for (Turn turn; !turn.over(); turn.count(shared_.message)) {
    if (!replay_ || !shared_.message.receive(replay_.get())) return;
    replay_deadline_ = shared_.clock.now() + shared_.options.replay_timeout;
    const auto from = feed_.replayed(shared_.message.frames(), shared_.clock.wall());
    if (!feed_.replaying()) close_replay();
    ask(from);
  }
  shared_.poller.look_again(token_of(engine_, kReplay));
}

// A running replay is void. Without a connection the next one will ask.
void Follower::ask(std::optional<std::uint64_t> from) {
  if (!from) return;
  close_replay();
  ask_from_ = from;
  ask_at_.reset();
  if (peers_ > 0) ask_at_ = std::max(shared_.clock.now(), settled_at_);
}

// A socket per request: what is left of an earlier answer goes away with its socket.
void Follower::send_request() {
  ask_at_.reset();
  auto socket = open_replay(shared_, endpoints_);
  if (!socket.ok() || !send_replay_request(socket->get(), *ask_from_)) {
    ask(feed_.replay_timed_out(shared_.clock.wall()));
    return;
  }
  replay_ = std::move(*socket);
  shared_.poller.watch(replay_.get(), token_of(engine_, kReplay));
  replay_deadline_ = shared_.clock.now() + shared_.options.replay_timeout;
}

void Follower::close_replay() {
  replay_deadline_.reset();
  if (!replay_) return;
  shared_.poller.forget(replay_.get());
  replay_.reset();
}

void Follower::reopen() {
  reopen_at_.reset();
  const bool bound = endpoints_.bind && events_;
  close_events();
  if (bound) {  // libzmq frees the address some time after
    reopen_at_ = shared_.clock.now() + kReopenAfter;
    return;
  }
  auto socket = open_events(shared_, endpoints_);
  address_in_use_ = !socket.ok() && socket.error().code == ErrorCode::Unavailable;
  if (!socket.ok()) {
    reopen_at_ = shared_.clock.now() + kReopenAfter;
    return;
  }
  events_ = std::move(*socket);
  watch_events();
}

Instant Follower::deadline() const {
  auto next = Instant::max();
  for (const auto& at : {ask_at_, replay_deadline_, reopen_at_}) {
    if (at) next = std::min(next, *at);
  }
  return next;
}

void Follower::meet_deadline() {
  const auto now = shared_.clock.now();
  if (ask_at_ && now >= *ask_at_) send_request();
  if (replay_deadline_ && now >= *replay_deadline_) {
    close_replay();
    ask(feed_.replay_timed_out(shared_.clock.wall()));
  }
  if (reopen_at_ && now >= *reopen_at_) reopen();
}

void Follower::relearn(bool replay) {
  const auto from = feed_.relearn(replay, shared_.clock.wall());
  if (!feed_.replaying()) {
    close_replay();
    ask_at_.reset();
  }
  ask(from);
}

events::EngineStatus Follower::status() const {
  using events::EngineHealth;
  auto status = feed_.status();
  status.connections_lost = connections_lost_;
  if (address_in_use_) {
    status.health = EngineHealth::AddressInUse;
  } else if (peers_ == 0) {
    status.health = connected_before_ ? EngineHealth::Disconnected : EngineHealth::Waiting;
  } else if (feed_.replaying()) {
    status.health = EngineHealth::Replaying;
  } else {
    status.health = status.is_other_rank ? EngineHealth::OtherRank : EngineHealth::Verified;
  }
  return status;
}

}  // namespace sightline::subscriber
