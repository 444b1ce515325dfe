// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/event_subscriber.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/runtime/worker_thread.h"

#include "router/cache/subscriber/feed_commands.h"
#include "router/cache/subscriber/rank_connection_parts.h"
#include "router/cache/subscriber/status_log.h"

namespace sightline::subscriber {
namespace {

using events::FeedStatus;

constexpr Instant kNoTurn = Instant::max();  // the thread waits for messages
// The pause before a step that got no memory is tried again.
constexpr std::chrono::milliseconds kTryAgain{100};

struct FollowedFeed {
  std::unique_ptr<operations::OperationSink> sink;
  std::unique_ptr<RankConnection> follower;
  Instant due = Instant::max();  // its key in `deadlines`
  bool is_broken = false;        // a step got no memory: its blocks are loaded again
};

Error no_descriptors() {
  return internal_error("no file descriptors left for KV events: raise the limit of open files");
}

}  // namespace

struct EventSubscriber::State {
  State(const SubscriberOptions& with, const keys::Scheme& keys, SinkMaker sinks, const Clock& time)
      : options(with),
        held(with.held_bytes_max, {.parent = with.held_memory, .limit = "events-held-bytes-max"}),
        handle_bytes(with.handle_bytes_max, {.parent = with.handle_memory}),
        scheme(keys),
        make_sink(std::move(sinks)),
        clock(time),
        context(open_context()) {
    if (options.names == nullptr) own_names.emplace(clock);
  }

  void push(FeedCommand command) { inbox->push(std::move(command)); }
  void run(const std::stop_token& stop);
  void turn(const std::stop_token& stop);
  void carry_out(FeedCommand& command);
  void follower_step(CacheId cache, const std::function<void(RankConnection&)>& step);
  void mend();
  void read_all();
  hosts::Lookup::LookupState find_name(CacheId cache, const std::string& name);
  [[nodiscard]] bool is_wanted(CacheId cache) const;
  void follow(CacheId cache, const FollowOrder& order);
  Result<std::unique_ptr<RankConnection>> open(FollowOrder order, operations::OperationSink& sink);
  void refuse(CacheId cache, const Error& error);
  void forget(CacheId cache);
  void read(std::uint64_t token);
  void meet_deadlines();
  void give_places();
  void resume_held_back();
  void look_after_links();
  [[nodiscard]] std::int64_t wait_ms() const;
  void settle(CacheId cache, FollowedFeed& followed);
  void publish(const FeedStatus& status);

  const SubscriberOptions options;
  ByteBudget held;
  ByteBudget handle_bytes;
  const keys::Scheme& scheme;
  const SinkMaker make_sink;
  const Clock& clock;
  const ZmqContext context;

  std::optional<hosts::Lookup> own_names;
  const std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();

  mutable Mutex mutex;                                          // held for memory work only
  std::map<CacheId, FeedStatus> statuses SL_GUARDED_BY(mutex);  // of all ranks to follow

  std::atomic<Instant> turn_began = kNoTurn;
  std::atomic<std::uint64_t> held_hits = 0;

  // Only the thread uses these.
  std::vector<FeedCommand> commands;
  std::size_t carried_out = 0;  // of these
  bool has_broken = false;      // some follower is broken
  bool has_lost_turn = false;   // signals of the poller were perhaps lost
  ZmqPoller& poller = inbox->poller;
  Multipart message;
  ReplayPlaces places;
  std::map<CacheId, FollowedFeed> followers;
  std::set<CacheId> held_back;
  bool is_scarce = false;  // little room for more events was left at the last look
  Instant links_seen_at{};
  std::set<std::pair<Instant, CacheId>> deadlines;  // of the followers that have one

  std::optional<WorkerThread> thread;  // ends before all members above
};

// ZMQ sockets must be closed on the thread that opened them.
void EventSubscriber::State::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!run_step([&] { turn(stop); })) has_lost_turn = true;
  }
  followers.clear();
}

void EventSubscriber::State::turn(const std::stop_token& stop) {
  // A command that gets no memory is tried again in the next turn, before others are taken.
  if (carried_out == commands.size()) {
    commands = inbox->take();
    carried_out = 0;
  }
  for (; carried_out < commands.size(); ++carried_out) carry_out(commands[carried_out]);
  mend();
  turn_began = kNoTurn;
  const auto tokens = poller.wait(wait_ms());
  turn_began = clock.now();
  for (const std::uint64_t token : tokens) {
    if (stop.stop_requested()) break;
    read(token);
  }
  meet_deadlines();
  give_places();
  resume_held_back();
  look_after_links();
}

void EventSubscriber::State::carry_out(FeedCommand& command) {
  if (command.kind == FeedCommand::Kind::Follow) return follow(command.cache, *command.order);
  if (command.kind == FeedCommand::Kind::Forget) return forget(command.cache);
  follower_step(command.cache, [&](RankConnection& follower) {
    if (command.kind == FeedCommand::Kind::LookedUp) return follower.looked_up();
    if (command.kind == FeedCommand::Kind::Look) return follower.look();
    follower.relearn(command.kind == FeedCommand::Kind::RelearnByReplay);
  });
}

// A step without memory may be half applied.
void EventSubscriber::State::follower_step(CacheId cache,
                                           const std::function<void(RankConnection&)>& step) {
  const auto entry = followers.find(cache);
  if (entry == followers.end()) return;
  FollowedFeed& followed = entry->second;
  const bool is_done = run_step([&] {
    step(*followed.follower);
    settle(cache, followed);
  });
  if (is_done) return;
  followed.is_broken = has_broken = true;
  // Until mend(), nothing about the rank is proved. Memory may be short for a while.
  run_step([&] {
    FeedStatus status = followed.follower->status();
    status.facts.health = operations::FeedHealth::Replaying;
    publish(status);
  });
}

// No sequence number shows the lost step. So the blocks are dropped and loaded by a replay.
void EventSubscriber::State::mend() {
  if (std::exchange(has_lost_turn, false)) read_all();
  if (!std::exchange(has_broken, false)) return;
  for (auto& [cache, followed] : followers) {
    if (!std::exchange(followed.is_broken, false)) continue;
    follower_step(cache, [](RankConnection& follower) { follower.relearn(true); });
  }
}

void EventSubscriber::State::read_all() {
  for (const auto& [cache, followed] : followers) {
    for (const Part part : {kLinks, kMessages, kReplay}) read(token_of(cache, part));
  }
}

hosts::Lookup::LookupState EventSubscriber::State::find_name(CacheId cache,
                                                             const std::string& name) {
  auto& names = options.names != nullptr ? *options.names : *own_names;
  return names.find(name, [box = std::weak_ptr(inbox), cache](const hosts::Resolved&) {
    const auto open = box.lock();
    if (open) open->push({.kind = FeedCommand::Kind::LookedUp, .cache = cache});
  });
}

bool EventSubscriber::State::is_wanted(CacheId cache) const {
  const MutexLock lock(mutex);
  return statuses.contains(cache);
}

void EventSubscriber::State::follow(CacheId cache, const FollowOrder& order) {
  if (!is_wanted(cache)) return;
  auto sink = make_sink(cache);
  auto follower = open(order, *sink);
  if (!follower.ok()) {
    refuse(cache, follower.error());
    return;
  }
  followers.try_emplace(cache, FollowedFeed{std::move(sink), std::move(*follower)});
  follower_step(cache, [](RankConnection&) {});
}

Result<std::unique_ptr<RankConnection>> EventSubscriber::State::open(
    FollowOrder order, operations::OperationSink& sink) {
  auto stream = options.stream;
  stream.replay_available = order.endpoints.replay.has_value();
  stream.held = &held;
  order.normaliser.handle_bytes = &handle_bytes;
  events::EventFeed feed(std::move(order.normaliser), stream, scheme, sink);
  const RankConnection::Deps shared{.context = context.get(),
                                    .poller = poller,
                                    .message = message,
                                    .places = places,
                                    .clock = clock,
                                    .options = options.follow,
                                    .find_name = [this](CacheId cache, const std::string& name) {
                                      return find_name(cache, name);
                                    }};
  return RankConnection::open(shared, std::move(order.endpoints), std::move(feed));
}

void EventSubscriber::State::refuse(CacheId cache, const Error& error) {
  {
    const MutexLock lock(mutex);
    if (statuses.erase(cache) == 0) return;  // another thread removed it
  }
  if (options.on_refused) options.on_refused(cache, error);
}

void EventSubscriber::State::forget(CacheId cache) {
  const auto entry = followers.find(cache);
  if (entry == followers.end()) return;
  entry->second.follower->forget();
  deadlines.erase({entry->second.due, cache});
  held_back.erase(cache);
  followers.erase(entry);
}

void EventSubscriber::State::read(std::uint64_t token) {
  follower_step(RankConnection::engine_of(token),
                [token](RankConnection& follower) { follower.read(token); });
}

void EventSubscriber::State::meet_deadlines() {
  const auto now = clock.now();
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    const auto cache = deadlines.begin()->second;
    deadlines.erase(deadlines.begin());
    followers[cache].due = Instant::max();
    follower_step(cache, [](RankConnection& follower) { follower.meet_deadline(); });
  }
}

void EventSubscriber::State::give_places() {
  while (const auto cache = places.next()) {
    follower_step(*cache, [](RankConnection& follower) { follower.take_place(); });
  }
}

void EventSubscriber::State::resume_held_back() {
  const bool scarce = events::is_scarce(held);
  if (scarce && !std::exchange(is_scarce, scarce)) {
    ++held_hits;
    log(LogLevel::Warn, "paused reading KV events: events.held_bytes_max reached",
        {{"held_bytes", held.held()}, {"engines_held_back", held_back.size()}});
  }
  is_scarce = scarce;
  for (auto cache = held_back.begin(); cache != held_back.end();) {
    auto& follower = *followers[*cache].follower;
    follower.resume();
    cache = follower.held_back() ? std::next(cache) : held_back.erase(cache);
  }
}

void EventSubscriber::State::look_after_links() {
  const auto now = clock.now();
  const auto since_last = now - links_seen_at;
  if (since_last < options.follow.heartbeat.interval) return;
  links_seen_at = now;
  for (auto& entry : followers) {
    FollowedFeed& followed = entry.second;
    bool is_closed = false;
    const bool is_done =
        run_step([&] { is_closed = followed.follower->look_after_links(since_last); });
    if (is_closed) follower_step(entry.first, [](RankConnection&) {});
    if (!is_done) followed.is_broken = has_broken = true;
  }
}

// Returns the time until the next deadline. -1: no deadline.
std::int64_t EventSubscriber::State::wait_ms() const {
  if (followers.empty()) return -1;
  auto next = links_seen_at + options.follow.heartbeat.interval;
  if (has_broken) next = std::min(next, clock.now() + kTryAgain);
  if (!deadlines.empty()) next = std::min(next, deadlines.begin()->first);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - clock.now());
  return std::max<std::int64_t>(left.count(), 0);
}

// Runs after each step of a follower.
void EventSubscriber::State::settle(CacheId cache, FollowedFeed& followed) {
  const auto due = followed.follower->deadline();
  if (due != followed.due) {
    deadlines.erase({std::exchange(followed.due, Instant::max()), cache});
    if (due != Instant::max()) deadlines.insert({due, cache});
    followed.due = due;
  }
  if (followed.follower->held_back()) held_back.insert(cache);
  publish(followed.follower->status());
}

void EventSubscriber::State::publish(const FeedStatus& status) {
  FeedStatus before;
  {
    const MutexLock lock(mutex);
    const auto entry = statuses.find(status.cache);
    if (entry == statuses.end()) return;  // no longer followed
    before = std::exchange(entry->second, status);
  }
  log_changes(before, status);
  if (options.on_status) options.on_status(status);
  if (is_news(before, status) && options.on_change) options.on_change(status);
}

Result<std::unique_ptr<EventSubscriber>> EventSubscriber::create(const SubscriberOptions& options,
                                                                 const keys::Scheme& scheme,
                                                                 SinkMaker make_sink,
                                                                 const Clock& clock) {
  auto state = std::make_unique<State>(options, scheme, std::move(make_sink), clock);
  if (!state->context || !state->poller.ok()) return no_descriptors();
  State* shared = state.get();  // the thread ends before the state does
  state->thread.emplace("kv-events", [shared](const std::stop_token& stop) { shared->run(stop); });
  return std::make_unique<EventSubscriber>(std::move(state));
}

EventSubscriber::EventSubscriber(std::unique_ptr<State> state) : state_(std::move(state)) {}

EventSubscriber::~EventSubscriber() {
  state_->thread->request_stop();
  state_->poller.wake();
}

void EventSubscriber::add(const FeedEndpoints& endpoints, events::NormaliserOptions cache) {
  const auto id = cache.id;
  {
    const MutexLock lock(state_->mutex);
    SL_CHECK(state_->statuses.emplace(id, FeedStatus{.cache = id}).second);
  }
  auto order = std::make_unique<FollowOrder>(FollowOrder{endpoints, std::move(cache)});
  state_->push({.kind = FeedCommand::Kind::Follow, .cache = id, .order = std::move(order)});
}

void EventSubscriber::remove(CacheId cache) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->statuses.erase(cache) == 0) return;
  }
  state_->push({.kind = FeedCommand::Kind::Forget, .cache = cache});
}

void EventSubscriber::relearn(CacheId cache, bool replay) {
  using Kind = FeedCommand::Kind;
  state_->push({.kind = replay ? Kind::RelearnByReplay : Kind::Relearn, .cache = cache});
}

void EventSubscriber::look(CacheId cache) {
  state_->push({.kind = FeedCommand::Kind::Look, .cache = cache});
}

std::size_t EventSubscriber::held_bytes() const { return state_->held.held(); }
std::uint64_t EventSubscriber::held_hits() const { return state_->held_hits; }

Duration EventSubscriber::turn_age() const {
  const Instant began = state_->turn_began;
  return began == kNoTurn ? Duration::zero() : state_->clock.now() - began;
}

std::optional<FeedStatus> EventSubscriber::status(CacheId cache) const {
  const MutexLock lock(state_->mutex);
  const auto entry = state_->statuses.find(cache);
  if (entry == state_->statuses.end()) return std::nullopt;
  return entry->second;
}

std::vector<FeedStatus> EventSubscriber::statuses() const {
  const MutexLock lock(state_->mutex);
  std::vector<FeedStatus> all;
  for (const auto& [cache, status] : state_->statuses) all.push_back(status);
  return all;
}

}  // namespace sightline::subscriber
