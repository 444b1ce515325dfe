// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <utility>
#include <variant>

#include "router/replicas/followed/followed_state.h"
#include "router/replicas/frames/fields.h"

namespace sightline::followed {
namespace {

// The most messages that are read of one stream before the others have their turn.
constexpr std::size_t kTurnMessagesMax = 64;
constexpr std::size_t kTurnBytesMax = std::size_t{1} << 20U;  // with the message that exceeds it
// The least time between two turns of a stream that receives nothing. A deadline in the past must
// not keep the thread busy.
constexpr Duration kTurnPause = std::chrono::milliseconds(1);
// The pause before a step that ran out of memory is tried again.
constexpr Duration kTryAgain = std::chrono::milliseconds(100);

std::size_t bytes_of(const nats::Event& event) {
  const auto* message = std::get_if<nats::Message>(&event);
  return message == nullptr ? 0 : message->payload.size();
}

// Whether the facts differ in more than the fields that change with each message.
bool is_news(const operations::CacheFacts& before, operations::CacheFacts now) {
  if (before.sequence.has_value() == now.sequence.has_value()) now.sequence = before.sequence;
  now.caught_up = before.caught_up;
  return before != now;
}

}  // namespace

std::vector<StreamCommand> FollowedFeeds::State::take_commands() {
  std::vector<StreamCommand> all;
  const MutexLock lock(mutex);
  all.swap(commands);
  return all;
}

void FollowedFeeds::State::run(const std::stop_token& stop) {
  // Subscribed before the first question is sent.
  deps.events.subscribe(returns_subject, returns);
  while (!stop.stop_requested()) {
    if (!run_step([&] { turn(); })) has_lost_turn = true;
  }
  // Inboxes that stay subscribed would fill without a reader.
  for (const auto& [cache, one] : followed) unsubscribe(one);
  deps.events.unsubscribe(returns_subject, returns);
}

void FollowedFeeds::State::turn() {
  turn_began = kNoTurn;
  const auto rung = door->wait(next_turn());
  turn_began = deps.clock.now();
  for (const CacheId cache : rung) ring(cache);
  if (std::exchange(has_lost_turn, false)) ring_all();
  // A command that ran out of memory is tried again in the next turn, before new commands are
  // taken. Their order matters.
  if (carried_out == taken.size()) {
    taken = take_commands();
    carried_out = 0;
  }
  for (; carried_out < taken.size(); ++carried_out) carry_out(taken[carried_out]);
  // After the commands, so it follows no stream that was just removed.
  mend();
  measure_nats();
  read_some();
  meet_deadlines();
  if (may_reclaim) may_reclaim = deps.index.reclaim_some();
}

void FollowedFeeds::State::ring(CacheId cache) {
  const auto entry = followed.find(cache);
  if (entry == followed.end() || entry->second.is_busy) return;
  busy.push_back(cache);
  entry->second.is_busy = true;
}

void FollowedFeeds::State::ring_all() {
  has_lost_turn = true;  // until all have rung
  for (const auto& [cache, one] : followed) ring(cache);
  has_lost_turn = false;
}

// A step that ran out of memory may have applied a part of its message. So the stream is marked,
// and mend() begins it again.
void FollowedFeeds::State::stream_step(CacheId cache, const std::function<void(Followed&)>& step) {
  const auto entry = followed.find(cache);
  if (entry == followed.end()) return;
  const bool is_done = run_step([&] { step(entry->second); });
  if (is_done) return;
  entry->second.is_broken = has_broken = true;
  // Nothing of the stream is proved until it is mended. That can take a while without memory.
  run_step([&] {
    FollowedStatus status = entry->second.stream->status();
    status.facts.health = operations::FeedHealth::Replaying;
    publish(std::move(status));
  });
}

// The lost step is a gap that no sequence number shows. So the cache is cleared and the stream is
// followed like a new one. It begins with a dump of the agent.
void FollowedFeeds::State::mend() {
  if (!std::exchange(has_broken, false)) return;
  has_broken = true;  // until all are mended
  for (const auto& [cache, status] : all_statuses()) {
    const auto entry = followed.find(cache);
    if (entry != followed.end() && !entry->second.is_broken) continue;
    forget(cache);
    follow(cache, status.stream);
  }
  has_broken = std::any_of(followed.begin(), followed.end(),
                           [](const auto& one) { return one.second.is_broken; });
}

void FollowedFeeds::State::measure_nats() {
  const Instant now = deps.clock.now();
  // Only sealed numbers count, and of these only our own (`RoundTrip::heard()`).
  while (const auto event = returns->take_now()) {
    const auto* message = std::get_if<nats::Message>(&*event);
    if (message == nullptr) continue;
    const auto opened = deps.sealer.open(message->subject, message->payload);
    const auto* bytes = std::get_if<std::string_view>(&opened);
    if (bytes == nullptr) continue;
    frames::FieldReader in(*bytes);
    const auto number = in.integer<std::uint64_t>();
    const MutexLock lock(mutex);
    if (in.is_whole()) round_trip.heard(number, now);
  }
  const auto number = [&] {
    // Read together with turn(), so all streams of this turn see the same value.
    const MutexLock lock(mutex);
    nats_fresh_at = round_trip.fresh_at();
    return round_trip.turn(now);
  }();
  if (!number) return;
  frames::FieldWriter out;
  out.integer(*number);
  deps.control.publish(returns_subject, deps.sealer.seal(returns_subject, out.take()));
}

std::map<CacheId, FollowedStatus> FollowedFeeds::State::all_statuses() const {
  const MutexLock lock(mutex);
  return statuses;
}

Instant FollowedFeeds::State::next_turn() const {
  if (!busy.empty() || may_reclaim || has_lost_turn) return deps.clock.now();
  const Instant next = [&] {
    const MutexLock lock(mutex);
    return round_trip.due();
  }();
  // The next number to itself is always a deadline: NATS is measured even without streams.
  const Instant due = deadlines.empty() ? next : std::min(deadlines.begin()->first, next);
  const bool tries_again = has_broken || carried_out < taken.size();
  return tries_again ? std::min(due, deps.clock.now() + kTryAgain) : due;
}

void FollowedFeeds::State::carry_out(const StreamCommand& command) {
  if (command.kind == StreamCommand::Kind::Follow) return follow(command.cache, command.stream);
  if (command.kind == StreamCommand::Kind::Forget) return forget(command.cache);
  stream_step(command.cache, [&](Followed& one) {
    const Instant now = deps.clock.now();
    if (command.kind == StreamCommand::Kind::Look) one.stream->look(now);
    if (command.kind == StreamCommand::Kind::Relearn) one.stream->relearn(now);
    if (command.kind == StreamCommand::Kind::AskAgain) one.stream->ask_again(now);
    settle(command.cache, one);
  });
}

void FollowedFeeds::State::follow(CacheId cache, frames::StreamName stream) {
  // The cache was removed in the meantime, or the command is repeated.
  if (!is_wanted(cache) || followed.contains(cache)) return;
  Followed one;
  one.bell = std::make_shared<Doorbell::Bell>(door, cache);
  one.inbox = std::make_shared<nats::Inbox>(
      nats::Inbox::Limits{.messages_max = options.stream_messages_max,
                          .bytes_max = options.stream_bytes_max},
      nats::Inbox::Among{.budget = budget, .told = [bell = one.bell] { bell->ring(); }});
  follower::FollowerSetup setup{
      .stream = std::move(stream),
      .reader = deps.reader + "-" + std::to_string(++readers),  // its requests count from 1 on
      .seed = deps.draw(),
      .options = options.follower,
      .to_wall = deps.clock.wall().time_since_epoch() - deps.clock.now().time_since_epoch()};
  setup.options.held = budget.get();
  one.stream = std::make_unique<FollowedStream>(
      cache, std::move(setup),
      FollowedStream::Deps{.subjects = deps.subjects,
                           .sealer = deps.sealer,
                           .index = deps.index,
                           .held = deps.held,
                           .removals = deps.removals,
                           .send = [this](const std::string& subject, const std::string& payload) {
                             deps.control.publish(subject, payload);
                           }});
  followed.emplace(cache, std::move(one));
  // Subscribed within a step: if there is no memory, mend() tries it again.
  stream_step(cache, [&](Followed& begun) {
    deps.events.subscribe(begun.stream->events_subject(), begun.inbox);
    deps.events.subscribe(begun.stream->replies_subject(), begun.inbox);
    settle(cache, begun);
  });
}

void FollowedFeeds::State::unsubscribe(const Followed& one) const {
  deps.events.unsubscribe(one.stream->events_subject(), one.inbox);
  deps.events.unsubscribe(one.stream->replies_subject(), one.inbox);
}

void FollowedFeeds::State::forget(CacheId cache) {
  const auto entry = followed.find(cache);
  if (entry == followed.end()) return;
  unsubscribe(entry->second);
  entry->second.stream->forget();
  deadlines.erase({entry->second.due, cache});
  // The cache's turn would find no stream.
  std::erase(busy, cache);
  may_reclaim = true;
  followed.erase(entry);
  lines.forget(cache);
}

// One turn for each stream that has something.
void FollowedFeeds::State::read_some() {
  // Counted before the turns: a stream that floods joins again at the end.
  for (std::size_t left = busy.size(); left > 0; --left) {
    const CacheId cache = busy.front();
    busy.pop_front();
    stream_step(cache, [&](Followed& one) {
      bool is_used = false;
      one.is_busy = read_turn(one, is_used);
      if (one.is_busy) busy.push_back(cache);
      // Nothing was used and no deadline came nearer. The work of settle() would be wasted on
      // dropped messages.
      if (!is_used && one.stream->deadline() >= one.due) return;
      settle(cache, one);
      may_reclaim = true;
    });
  }
}

// Returns true if there may be more.
bool FollowedFeeds::State::read_turn(Followed& one, bool& is_used) {
  // Before the first message is taken, see Doorbell.
  one.bell->answered();
  std::size_t bytes = 0;
  for (std::size_t messages = 0; messages < kTurnMessagesMax; ++messages) {
    const auto event = one.inbox->take_now();
    if (!event) return false;
    is_used = one.stream->take(*event, deps.clock.now()) || is_used;
    bytes += bytes_of(*event);
    if (bytes >= kTurnBytesMax) return true;
  }
  return true;
}

void FollowedFeeds::State::meet_deadlines() {
  const Instant now = deps.clock.now();
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    const CacheId cache = deadlines.begin()->second;
    stream_step(cache, [&](Followed& one) {
      leave_deadlines(cache, one);
      settle(cache, one);
    });
  }
}

void FollowedFeeds::State::leave_deadlines(CacheId cache, Followed& one) {
  deadlines.erase({std::exchange(one.due, Instant::max()), cache});
}

// Follows every change of a stream, and its deadline.
void FollowedFeeds::State::settle(CacheId cache, Followed& one) {
  const Instant now = deps.clock.now();
  one.stream->nats_fresh(nats_fresh_at);
  one.stream->turn(now);
  leave_deadlines(cache, one);
  one.due = one.stream->deadline();
  if (one.due != Instant::max()) {
    // A deadline in the past must not make the stream due again immediately.
    one.due = std::max(one.due, now + kTurnPause);
    deadlines.insert({one.due, cache});
  }
  publish(one.stream->status());
}

void FollowedFeeds::State::publish(FollowedStatus status) {
  FollowedStatus before;
  {
    const MutexLock lock(mutex);
    const auto entry = statuses.find(status.cache);
    if (entry == statuses.end()) return;  // the cache was removed
    before = std::exchange(entry->second, status);
  }
  // Outside of the mutex: logs and callbacks may take long.
  lines.tell(before, status, deps.clock.now());
  if (options.on_change && is_news(before.facts, status.facts)) {
    options.on_change(status.cache, status.facts);
  }
}

}  // namespace sightline::followed
