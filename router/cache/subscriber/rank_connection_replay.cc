// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The replays of a follower: when it requests, reads and ends one.
#include <algorithm>
#include <utility>

#include "router/cache/subscriber/rank_connection.h"
#include "router/cache/subscriber/rank_connection_parts.h"

namespace sightline::subscriber {

namespace {

// A look-up ends earlier than this, with or without a result.
constexpr std::chrono::minutes kLookupLongest{1};

}  // namespace

// Answers for a replay without a place wait until it gets one.
void RankConnection::read_replay() {
  if (!replay_ || shared_.places.wants(cache_)) return;
  if (shared_.places.has(cache_)) {
    take_answers();
  } else if (has_message(replay_.get())) {
    shared_.places.want(cache_);
    replay_deadline_.reset();
  }
}

void RankConnection::take_answers() {
  const auto& options = shared_.options;
  for (ReadQuota turn; !turn.over(); turn.count(shared_.message)) {
    if (!replay_ || !receive(replay_.get())) return;
    heard_at_ = shared_.clock.now();
    if (!std::exchange(answered_, true)) place_until_ = heard_at_ + options.place_turn;
    const auto from = feed_.replayed(shared_.message.frames(), shared_.clock.wall());
    replay_deadline_ =
        heard_at_ + (feed_.replay_progressed() ? options.replay_cut : options.replay_timeout);
    if (!feed_.replaying()) close_replay();
    ask(from);
  }
  shared_.poller.look_again(token_of(cache_, kReplay));
}

void RankConnection::take_place() {
  const auto now = shared_.clock.now();
  place_until_ = now + (replay_ ? shared_.options.place_turn : shared_.options.place_silence);
  if (!replay_) {
    send_request();
    return;
  }
  replay_deadline_ = now + shared_.options.replay_timeout;
  take_answers();
}

// Voids a running replay. Without a connection, the next connection requests one.
void RankConnection::ask(std::optional<std::uint64_t> from) {
  if (!from) return;
  close_replay();
  queue_.reset();
  ask_from_ = from;
  ask_at_.reset();
  if (peers_ > 0) ask_at_ = std::max(shared_.clock.now(), settled_at_);
}

// Each request has its own socket. Answers to an earlier request disappear with the earlier socket.
void RankConnection::send_request() {
  answered_ = false;
  const auto endpoint = replay_at();
  if (!endpoint) {
    shared_.places.give_up(cache_);
    place_until_.reset();
    return;
  }
  auto socket = open_replay(shared_, *endpoint);
  if (!socket.ok() || !send_replay_request(socket->get(), *ask_from_)) {
    shared_.places.give_up(cache_);
    ask(feed_.replay_timed_out(shared_.clock.wall()));
    return;
  }
  replay_ = std::move(*socket);
  shared_.poller.watch(replay_.get(), token_of(cache_, kReplay));
  replay_deadline_ = shared_.clock.now() + shared_.options.replay_timeout;
}

// Returns empty while the name is looked up. The request is repeated after that. Returns an empty
// text if there is no address. libzmq refuses that text.
std::optional<std::string> RankConnection::replay_at() {
  const auto& name = origin_.replay.name();
  if (name.empty()) return origin_.replay.text();
  if (name == origin_.events.name() && address_) return origin_.replay.at(*address_);
  const auto answer = shared_.find_name(cache_, name);
  if (!answer.found.addresses.empty()) return origin_.replay.at(answer.found.addresses.front());
  if (!answer.asked_at) return std::string();
  ask_at_ = shared_.clock.now() + kLookupLongest;
  return std::nullopt;
}

void RankConnection::close_replay() {
  shared_.places.give_up(cache_);
  replay_deadline_.reset();
  place_until_.reset();
  if (!replay_) return;
  shared_.poller.forget(replay_.get());
  replay_.reset();
}

void RankConnection::meet_replay_deadlines(Instant now) {
  if (replay_deadline_ && now >= *replay_deadline_) {
    // Unread answers are no silence: the silence may be the router's own delay.
    replay_deadline_ = now + shared_.options.replay_timeout;
    if (has_message(replay_.get())) {
      read_replay();
    } else {
      close_replay();
      ask(feed_.replay_timed_out(shared_.clock.wall()));
    }
  }
  if (!place_until_ || now < *place_until_) return;
  place_until_.reset();
  if (!shared_.places.anybody_waits()) {
    place_until_ = now + shared_.options.place_turn;
  } else if (shared_.places.has(cache_)) {
    shared_.places.give_up(cache_);
    read_replay();  // asks for another place if there is something to read
  }
}

}  // namespace sightline::subscriber
