// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/rank_connection.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "router/cache/operations/facts.h"
#include "router/cache/subscriber/rank_connection_parts.h"

namespace sightline::subscriber {

namespace {

// The pause from a lost connection to the next one.
constexpr std::chrono::milliseconds kReconnectAfter{100};
// libzmq never connects again after a peer breaks the protocol or a limit. A bound socket may also
// count too few peers: the loss of one connection may be reported for another. A new socket
// receives reports about all of them.
constexpr std::chrono::seconds kReopenAfter{1};

}  // namespace

Result<std::unique_ptr<RankConnection>> RankConnection::open(const Deps& shared,
                                                             FeedEndpoints endpoints,
                                                             events::EventFeed feed) {
  Origin origin{.bind = endpoints.bind};
  if (endpoints.replay) {
    origin.replay = SL_TRY(ZmqEndpoint::parse("replay", std::move(*endpoints.replay)));
    // Refuses a bad replay endpoint here, not at the first gap.
    if (origin.replay.name().empty()) SL_TRY(open_replay(shared, origin.replay.text()));
  }
  origin.events = endpoints.bind
                      ? ZmqEndpoint::to_bind(std::move(endpoints.events))
                      : SL_TRY(ZmqEndpoint::parse("events", std::move(endpoints.events)));
  auto follower = std::make_unique<RankConnection>(shared, std::move(origin), std::move(feed));
  if (follower->is_named()) {
    follower->find_at_ = shared.clock.now();
    return follower;
  }
  const auto opened = follower->open_events();
  if (!opened.ok() && !follower->address_in_use_) return opened.error();
  return follower;
}

RankConnection::RankConnection(const Deps& shared, Origin origin, events::EventFeed feed)
    : shared_(shared),
      origin_(std::move(origin)),
      cache_(feed.status().cache),
      feed_(std::move(feed)) {}

RankConnection::~RankConnection() {
  close_replay();
  close_events();
}

CacheId RankConnection::engine_of(std::uint64_t token) {
  return {static_cast<std::uint32_t>(token / kParts)};
}

// If this fails, it is tried again after kReopenAfter.
Result<Done> RankConnection::open_events() {
  auto socket = EventsSocket::open(shared_.context,
                                   address_ ? origin_.events.at(*address_) : origin_.events.text(),
                                   origin_.bind,
                                   {shared_.options.receive_messages_max,
                                    shared_.options.frame_bytes_max, shared_.options.heartbeat});
  address_in_use_ = !socket.ok() && socket.error().code == ErrorCode::Unavailable;
  if (!socket.ok()) {
    reopen_at_ = shared_.clock.now() + kReopenAfter;
    return std::move(socket).error();
  }
  events_ = std::move(*socket);
  shared_.poller.watch(events_->links(), token_of(cache_, kLinks));
  shared_.poller.watch(events_->messages(), token_of(cache_, kMessages));
  return Done{};
}

void RankConnection::close_events() {
  if (!events_) return;
  shared_.poller.forget(events_->links());
  shared_.poller.forget(events_->messages());
  events_.reset();
}

void RankConnection::read(std::uint64_t token) {
  if (token % kParts == kReplay) {
    read_replay();
    return;
  }
  if (!events_) return;
  // Handles a new connection before the messages that came over it.
  read_links();
  if (token % kParts == kMessages && events_ && read_messages()) {
    shared_.poller.look_again(token);
  }
}

void RankConnection::read_links() {
  bool lost_unseen = false;
  while (events_) {
    const auto event = events_->next_link_event();
    if (!event) return;
    // A probe of the port was never a peer.
    if (*event == LinkEvent::Rejected) continue;
    if (*event == LinkEvent::Up) {
      ++peers_;
      come_up(std::exchange(lost_unseen, false));
      continue;
    }
    lost_unseen |= peers_ > 0;
    go_down(*event == LinkEvent::Retrying);
    // It is unknown which peers a bound socket has left, and their messages may be mixed.
    if (peers_ > 0) come_up(std::exchange(lost_unseen, false));
  }
}

void RankConnection::go_down(bool will_retry) {
  reopen_at_.reset();
  if (!will_retry) reopen_at_ = shared_.clock.now() + kReopenAfter;
  if (peers_ == 0) return;
  if (is_named()) find_at_ = tried_since_ = shared_.clock.now();
  if (!origin_.bind) {
    // The replay brings the messages of the lost connection. libzmq would connect again. But its
    // version 4.3.4 aborts the process if a queue that was full at the loss is read after that.
    lose_events(kReconnectAfter);
    return;
  }
  leave_peer();
  // Messages of the lost connection must not count as messages of the next one. So they are read
  // here. Messages beyond one turn are dropped, and a replay brings them. The loop has a limit,
  // because another peer of a bound socket may send without end.
  if (!feed_.replaying()) read_messages();
  feed_.lost();
  queue_.reset();
  for (int i = 0; i < shared_.options.receive_messages_max; ++i) {
    if (!receive(events_->messages())) return;
  }
}

void RankConnection::leave_peer() {
  --peers_;
  ++connections_lost_;
  close_replay();
  ask_at_.reset();
  ask_from_.reset();
}

// Ends all connections of the socket.
void RankConnection::lose_events(std::chrono::milliseconds until_again) {
  while (peers_ > 0) leave_peer();
  feed_.lost();
  queue_.reset();
  held_back_ = false;
  close_events();
  reopen_at_ = shared_.clock.now() + until_again;
}

bool RankConnection::receive(void* socket) {
  const bool received = shared_.message.receive(socket);
  if (received && socket != replay_.get()) wire_bytes_taken_ += shared_.message.wire_bytes();
  return received;
}

// after_unseen_loss: the connection before was lost since the last look. So messages of both may
// just have been read.
void RankConnection::come_up(bool after_unseen_loss) {
  reopen_at_.reset();
  settled_at_ = shared_.clock.now() + shared_.options.settling;
  if (is_named()) find_at_ = shared_.clock.now() + shared_.options.confirm_after;
  // Before the first connection there is no state to prove.
  if (!std::exchange(connected_before_, true)) {
    ask(feed_.start());
  } else {
    ask(feed_.reconnected(!after_unseen_loss, shared_.clock.wall()));
  }
}

// Returns true if more may wait.
bool RankConnection::read_messages() {
  for (ReadQuota turn; !turn.over(); turn.count(shared_.message)) {
    held_back_ = !feed_.wants_live();
    if (held_back_) return false;
    if (!receive(events_->messages())) {
      queue_.found_empty(shared_.clock.now());
      return false;
    }
    take_message();
  }
  return true;
}

void RankConnection::take_message() {
  const WallTime wall = shared_.clock.wall();
  const auto from = feed_.live(shared_.message.frames(), wall);
  const QueueWatch::Lag since_1970 = wall.time_since_epoch();
  heard_at_ = shared_.clock.now();
  queue_.read(heard_at_, since_1970 - QueueWatch::Lag(feed_.batch_timestamp_s()));
  ask(from);
}

void RankConnection::resume() {
  if (!held_back_ || !feed_.wants_live()) return;
  held_back_ = false;
  shared_.poller.look_again(token_of(cache_, kMessages));
}

bool RankConnection::look_after_links(Duration since_last) {
  if (!events_ || peers_ == 0) return false;
  const bool waits = has_message(events_->messages());
  if (waits && !held_back_) shared_.poller.look_again(token_of(cache_, kMessages));
  if (!events_->look_after_links(since_last, wire_bytes_taken_, waits)) return false;
  ++overruns_;
  lose_events(kReopenAfter);
  return true;
}

void RankConnection::reopen() {
  reopen_at_.reset();
  const bool bound = origin_.bind && events_;
  close_events();
  if (bound) {  // libzmq frees the address only some time later
    reopen_at_ = shared_.clock.now() + kReopenAfter;
  } else if (!is_named()) {
    (void)open_events();
  } else {
    find_events();
    // Until the look-up ends, the last known address is used.
    if (is_finding_ && address_) (void)open_events();
  }
}

void RankConnection::find_events() {
  find_at_.reset();
  const auto answer = shared_.find_name(cache_, origin_.events.name());
  is_finding_ = answer.asked_at.has_value();
  if (is_finding_) return;
  if (!answer.found.addresses.empty()) {
    take_addresses(answer.found.addresses);
  } else if (peers_ == 0 || answer.found.trouble == hosts::LookupFailure::Unknown) {
    // Another rank may have the address by now, and libzmq would connect to it again.
    leave_address();
  }
  name_trouble_ = address_ ? hosts::LookupFailure::None : answer.found.trouble;
  if (peers_ == 0) find_at_ = shared_.clock.now() + shared_.options.find_again;
}

void RankConnection::take_addresses(const std::vector<asio::ip::address>& found) {
  const auto present = address_ ? std::find(found.begin(), found.end(), *address_) : found.end();
  if (present == found.end()) {
    move_to(found.front());
  } else if (!events_) {
    move_to(*present);
    // Tries the next address of the name if this one has not answered for a while.
  } else if (peers_ == 0 && found.size() > 1 &&
             shared_.clock.now() - tried_since_ >= shared_.options.find_again) {
    move_to(std::next(present) == found.end() ? found.front() : *std::next(present));
  }
}

void RankConnection::leave_address() {
  if (peers_ > 0) ++connections_lost_;
  peers_ = 0;
  close_replay();
  ask_at_.reset();
  feed_.lost();
  held_back_ = false;
  close_events();
  address_.reset();
  reopen_at_.reset();
}

void RankConnection::move_to(const asio::ip::address& address) {
  leave_address();
  address_ = address;
  tried_since_ = shared_.clock.now();
  (void)open_events();
}

void RankConnection::looked_up() {
  if (is_finding_) find_events();
  // A replay request that waited for this look-up can be sent.
  if (ask_at_) ask_at_ = std::min(*ask_at_, std::max(shared_.clock.now(), settled_at_));
}

Instant RankConnection::deadline() const {
  auto next = Instant::max();
  for (const auto& at : {ask_at_, replay_deadline_, place_until_, reopen_at_, find_at_}) {
    if (at) next = std::min(next, *at);
  }
  return next;
}

void RankConnection::meet_deadline() {
  const auto now = shared_.clock.now();
  if (ask_at_ && now >= *ask_at_) {
    ask_at_.reset();
    shared_.places.want(cache_);
  }
  meet_replay_deadlines(now);
  if (reopen_at_ && now >= *reopen_at_) reopen();
  if (find_at_ && now >= *find_at_) find_events();
}

void RankConnection::look() { read(token_of(cache_, kMessages)); }

void RankConnection::relearn(bool replay) {
  const auto from = feed_.relearn(replay, shared_.clock.wall());
  if (!feed_.replaying()) {
    close_replay();
    ask_at_.reset();
  }
  ask(from);
  resume();
}

events::FeedStatus RankConnection::status() const {
  using operations::FeedHealth;
  auto status = feed_.status();
  status.connections_lost = connections_lost_;
  status.held_back = held_back_;
  status.overruns = overruns_;
  status.heard_at = heard_at_;
  if (address_in_use_) {
    status.facts.health = FeedHealth::AddressInUse;
  } else if (name_trouble_ != hosts::LookupFailure::None) {
    status.facts.health = name_trouble_ == hosts::LookupFailure::Unknown
                              ? FeedHealth::NameUnknown
                              : FeedHealth::NameUnanswered;
  } else if (peers_ == 0) {
    status.facts.health = connected_before_ ? FeedHealth::Disconnected : FeedHealth::Waiting;
  } else if (feed_.replaying()) {
    status.facts.health = FeedHealth::Replaying;
  } else {
    status.facts.health = status.is_other_rank ? FeedHealth::OtherRank : FeedHealth::Verified;
  }
  if (status.facts.health == FeedHealth::Verified) status.facts.caught_up = queue_.empty_at();
  return status;
}

}  // namespace sightline::subscriber
