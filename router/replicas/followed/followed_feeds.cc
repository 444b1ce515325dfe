// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/followed/followed_feeds.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "common/base/byte_budget.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/nats/inbox.h"
#include "common/runtime/worker_thread.h"

#include "router/replicas/followed/doorbell.h"
#include "router/replicas/followed/followed_stream.h"
#include "router/replicas/followed/round_trip.h"
#include "router/replicas/followed/stream_log.h"
#include "router/replicas/frames/fields.h"

namespace sightline::followed {
namespace {

// What is read of one stream before the others have their turn.
constexpr std::size_t kTurnMessagesMax = 64;
constexpr std::size_t kTurnBytesMax = std::size_t{1} << 20U;  // with the message that passes it
// Least time between two turns of a stream to which nothing comes.
constexpr Duration kTurnPause = std::chrono::milliseconds(1);
constexpr Instant kNoTurn = Instant::max();
constexpr nats::Inbox::Limits kReturnsLimits{.messages_max = 8'192, .bytes_max = 1U << 20U};

constexpr Duration kRoundTripEvery = std::chrono::seconds(1);
constexpr char kAway[] = "NATS cannot be reached: nothing that agents and routers send is received";
constexpr char kLate[] =
    "NATS is late: what this router sends takes longer than replica.stale_after to come back to it";

struct Command {
  enum class Kind : std::uint8_t { Follow, Forget, Look, Relearn, AskAgain };
  Kind kind = Kind::Follow;
  CacheId cache;
  frames::StreamName stream = {};  // to follow
};

struct Followed {
  std::shared_ptr<Doorbell::Bell> bell;
  std::shared_ptr<nats::Inbox> inbox;
  std::unique_ptr<FollowedStream> stream;
  Instant due = Instant::max();  // as in the queue of deadlines
  bool is_busy = false;          // waits for its turn
};

std::size_t bytes_of(const nats::Event& event) {
  const auto* message = std::get_if<nats::Message>(&event);
  return message == nullptr ? 0 : message->payload.size();
}

// But for what changes with each message.
bool is_news(const operations::CacheFacts& before, operations::CacheFacts now) {
  if (before.sequence.has_value() == now.sequence.has_value()) now.sequence = before.sequence;
  now.caught_up = before.caught_up;
  return before != now;
}

}  // namespace

struct FollowedFeeds::State {
  State(FollowedOptions with, const Around& of)
      : options(std::move(with)),
        around(of),
        budget(std::make_shared<ByteBudget>(
            options.held_bytes_max,
            ByteBudget::Within{.parent = options.memory, .limit = "events-held-bytes-max"})),
        returns_subject(of.subjects.replies(of.reader)),
        round_trip(std::min(kRoundTripEvery, options.follower.stale_after / 5), of.draw,
                   of.clock.now()) {}

  void push(Command command);
  std::vector<Command> take_commands();
  void run(const std::stop_token& stop);
  void carry_out(Command& command);
  void follow(CacheId cache, frames::StreamName stream);
  void forget(CacheId cache);
  void unsubscribe(const Followed& followed) const;
  void read_some();
  bool read_turn(Followed& followed, bool& is_used);
  void meet_deadlines();
  void settle(CacheId cache, Followed& followed);
  void measure_nats();
  void publish(FollowedStatus status);
  [[nodiscard]] Instant next_turn() const;
  [[nodiscard]] bool is_wanted(CacheId cache) const;

  const FollowedOptions options;
  const Around around;
  const std::shared_ptr<ByteBudget> budget;
  const std::shared_ptr<Doorbell> door = std::make_shared<Doorbell>();

  mutable Mutex mutex;  // held for memory work only
  std::vector<Command> commands SL_GUARDED_BY(mutex);
  std::map<CacheId, FollowedStatus> statuses SL_GUARDED_BY(mutex);  // of all that are wanted

  std::atomic<Instant> turn_began = kNoTurn;

  // Of the messages that this process sends to itself.
  const std::string returns_subject;
  const std::shared_ptr<nats::Inbox> returns = std::make_shared<nats::Inbox>(
      kReturnsLimits,
      nats::Inbox::Among{.budget = nullptr, .told = [door = door] { door->wake(); }});
  RoundTrip round_trip SL_GUARDED_BY(mutex);

  // The thread's own.
  std::map<CacheId, Followed> followed;
  std::uint64_t readers = 0;                        // that there ever were
  std::deque<CacheId> busy;                         // whose inboxes may have more, each once
  std::set<std::pair<Instant, CacheId>> deadlines;  // of the streams that have one
  Instant nats_fresh_at{};                          // as of round_trip
  bool may_reclaim = false;                         // the index may have memory to give back
  StreamLog lines;

  std::optional<WorkerThread> thread;  // ends before all of the above
};

void FollowedFeeds::State::push(Command command) {
  {
    const MutexLock lock(mutex);
    commands.push_back(std::move(command));
  }
  door->wake();
}

std::vector<Command> FollowedFeeds::State::take_commands() {
  std::vector<Command> taken;
  const MutexLock lock(mutex);
  taken.swap(commands);
  return taken;
}

bool FollowedFeeds::State::is_wanted(CacheId cache) const {
  const MutexLock lock(mutex);
  return statuses.contains(cache);
}

void FollowedFeeds::State::run(const std::stop_token& stop) {
  around.events.subscribe(returns_subject, returns);
  while (!stop.stop_requested()) {
    turn_began = kNoTurn;
    const auto rung = door->wait(next_turn());
    turn_began = around.clock.now();
    for (auto& command : take_commands()) carry_out(command);
    measure_nats();
    for (const CacheId cache : rung) {
      const auto entry = followed.find(cache);
      if (entry == followed.end() || std::exchange(entry->second.is_busy, true)) continue;
      busy.push_back(cache);
    }
    read_some();
    meet_deadlines();
    if (may_reclaim) may_reclaim = around.index.reclaim_some();
  }
  for (const auto& [cache, one] : followed) unsubscribe(one);
  around.events.unsubscribe(returns_subject, returns);
}

void FollowedFeeds::State::measure_nats() {
  const Instant now = around.clock.now();
  while (const auto event = returns->take_now()) {
    const auto* message = std::get_if<nats::Message>(&*event);
    if (message == nullptr) continue;
    const auto opened = around.sealer.open(message->subject, message->payload);
    const auto* bytes = std::get_if<std::string_view>(&opened);
    if (bytes == nullptr) continue;
    frames::Reader in(*bytes);
    const auto number = in.integer<std::uint64_t>();
    const MutexLock lock(mutex);
    if (in.is_whole()) round_trip.heard(number, now);
  }
  const auto number = [&] {
    const MutexLock lock(mutex);
    nats_fresh_at = round_trip.fresh_at();
    return round_trip.turn(now);
  }();
  if (!number) return;
  frames::Writer out;
  out.integer(*number);
  around.control.publish(returns_subject, around.sealer.seal(returns_subject, out.take()));
}

Instant FollowedFeeds::State::next_turn() const {
  if (!busy.empty() || may_reclaim) return around.clock.now();
  const Instant next = [&] {
    const MutexLock lock(mutex);
    return round_trip.due();
  }();
  return deadlines.empty() ? next : std::min(deadlines.begin()->first, next);
}

void FollowedFeeds::State::carry_out(Command& command) {
  if (command.kind == Command::Kind::Follow) {
    return follow(command.cache, std::move(command.stream));
  }
  const auto entry = followed.find(command.cache);
  if (entry == followed.end()) return;
  if (command.kind == Command::Kind::Forget) return forget(command.cache);
  FollowedStream& stream = *entry->second.stream;
  const Instant now = around.clock.now();
  if (command.kind == Command::Kind::Look) stream.look(now);
  if (command.kind == Command::Kind::Relearn) stream.relearn(now);
  if (command.kind == Command::Kind::AskAgain) stream.ask_again(now);
  settle(command.cache, entry->second);
}

void FollowedFeeds::State::follow(CacheId cache, frames::StreamName stream) {
  if (!is_wanted(cache)) return;
  Followed& one = followed[cache];
  one.bell = std::make_shared<Doorbell::Bell>(door, cache);
  one.inbox = std::make_shared<nats::Inbox>(
      nats::Inbox::Limits{.messages_max = options.stream_messages_max,
                          .bytes_max = options.stream_bytes_max},
      nats::Inbox::Among{.budget = budget, .told = [bell = one.bell] { bell->ring(); }});
  follower::FollowerSetup setup{
      .stream = std::move(stream),
      .reader = around.reader + "-" + std::to_string(++readers),  // its asks count from 1 on
      .seed = around.draw(),
      .options = options.follower,
      .to_wall = around.clock.wall().time_since_epoch() - around.clock.now().time_since_epoch()};
  setup.options.held = budget.get();
  one.stream = std::make_unique<FollowedStream>(
      cache, std::move(setup),
      FollowedStream::Around{
          .subjects = around.subjects,
          .sealer = around.sealer,
          .index = around.index,
          .held = around.held,
          .removals = around.removals,
          .send = [this](const std::string& subject, const std::string& payload) {
            around.control.publish(subject, payload);
          }});
  around.events.subscribe(one.stream->events_subject(), one.inbox);
  around.events.subscribe(one.stream->replies_subject(), one.inbox);
  settle(cache, one);
}

void FollowedFeeds::State::unsubscribe(const Followed& one) const {
  around.events.unsubscribe(one.stream->events_subject(), one.inbox);
  around.events.unsubscribe(one.stream->replies_subject(), one.inbox);
}

void FollowedFeeds::State::forget(CacheId cache) {
  const auto entry = followed.find(cache);
  unsubscribe(entry->second);
  deadlines.erase({entry->second.due, cache});
  std::erase(busy, cache);
  entry->second.stream->forget();
  may_reclaim = true;
  followed.erase(entry);
  lines.forget(cache);
}

// A turn for each that has something.
void FollowedFeeds::State::read_some() {
  for (std::size_t left = busy.size(); left > 0; --left) {
    const CacheId cache = busy.front();
    busy.pop_front();
    Followed& one = followed.at(cache);
    bool is_used = false;
    one.is_busy = read_turn(one, is_used);
    if (one.is_busy) busy.push_back(cache);
    if (!is_used && one.stream->deadline() >= one.due) continue;
    settle(cache, one);
    may_reclaim = true;
  }
}

// True: there may be more.
bool FollowedFeeds::State::read_turn(Followed& one, bool& is_used) {
  one.bell->answered();
  std::size_t bytes = 0;
  for (std::size_t messages = 0; messages < kTurnMessagesMax; ++messages) {
    const auto event = one.inbox->take_now();
    if (!event) return false;
    is_used = one.stream->take(*event, around.clock.now()) || is_used;
    bytes += bytes_of(*event);
    if (bytes >= kTurnBytesMax) return true;
  }
  return true;
}

void FollowedFeeds::State::meet_deadlines() {
  const Instant now = around.clock.now();
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    const CacheId cache = deadlines.begin()->second;
    settle(cache, followed.at(cache));
  }
}

// After anything happened to a stream, or its deadline came.
void FollowedFeeds::State::settle(CacheId cache, Followed& one) {
  const Instant now = around.clock.now();
  one.stream->nats_fresh(nats_fresh_at);
  one.stream->turn(now);
  deadlines.erase({one.due, cache});
  one.due = one.stream->deadline();
  if (one.due != Instant::max()) {
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
    if (entry == statuses.end()) return;  // no longer wanted
    before = std::exchange(entry->second, status);
  }
  lines.tell(before, status, around.clock.now());
  if (options.on_change && is_news(before.facts, status.facts)) {
    options.on_change(status.cache, status.facts);
  }
}

FollowedFeeds::FollowedFeeds(FollowedOptions options, const Around& around)
    : state_(std::make_unique<State>(std::move(options), around)) {
  state_->thread.emplace("sl-replica",
                         [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

FollowedFeeds::~FollowedFeeds() {
  state_->thread->request_stop();
  state_->door->wake();
  state_->thread->join();
}

void FollowedFeeds::add(CacheId cache, frames::StreamName stream) {
  {
    const MutexLock lock(state_->mutex);
    SL_CHECK(
        state_->statuses.emplace(cache, FollowedStatus{.cache = cache, .stream = stream}).second);
  }
  state_->push({.kind = Command::Kind::Follow, .cache = cache, .stream = std::move(stream)});
}

void FollowedFeeds::remove(CacheId cache) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->statuses.erase(cache) == 0) return;
  }
  state_->push({.kind = Command::Kind::Forget, .cache = cache});
}

void FollowedFeeds::look(CacheId cache) {
  if (state_->is_wanted(cache)) state_->push({.kind = Command::Kind::Look, .cache = cache});
}

void FollowedFeeds::relearn(CacheId cache) {
  if (state_->is_wanted(cache)) state_->push({.kind = Command::Kind::Relearn, .cache = cache});
}

void FollowedFeeds::ask_again(CacheId cache) {
  if (state_->is_wanted(cache)) state_->push({.kind = Command::Kind::AskAgain, .cache = cache});
}

std::optional<FollowedStatus> FollowedFeeds::status(CacheId cache) const {
  const MutexLock lock(state_->mutex);
  const auto entry = state_->statuses.find(cache);
  if (entry == state_->statuses.end()) return std::nullopt;
  return entry->second;
}

std::vector<FollowedStatus> FollowedFeeds::statuses() const {
  const MutexLock lock(state_->mutex);
  std::vector<FollowedStatus> all;
  for (const auto& [cache, status] : state_->statuses) all.push_back(status);
  return all;
}

NatsFreshness FollowedFeeds::nats() const {
  const State& state = *state_;
  const Instant now = state.around.clock.now();
  const MutexLock lock(state.mutex);
  NatsFreshness nats{.round_trip = state.round_trip.taken(now), .stale = {}};
  if (now - state.round_trip.fresh_at() < state.options.follower.stale_after) return nats;
  const bool is_there = state.around.control.connected() && state.around.events.connected();
  nats.stale = is_there ? kLate : kAway;
  return nats;
}

std::size_t FollowedFeeds::held_bytes() const { return state_->budget->held(); }

Duration FollowedFeeds::turn_age() const {
  const Instant began = state_->turn_began;
  return began == kNoTurn ? Duration::zero() : state_->around.clock.now() - began;
}

}  // namespace sightline::followed
