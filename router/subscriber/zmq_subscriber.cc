// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/subscriber/zmq_subscriber.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/runtime/worker_thread.h"

namespace sightline::subscriber {

namespace {

using events::EngineHealth;
using events::EngineStatus;

// The thread waits for messages.
constexpr Instant kNoTurn = Instant::max();

// An engine to follow, and where whoever asked for it waits.
struct Order {
  EngineEndpoints endpoints;
  events::NormaliserOptions normaliser;
  std::promise<Result<Done>> done;
};

struct Command {
  enum class Kind : std::uint8_t { Follow, Forget, Relearn, RelearnByReplay };
  Kind kind = Kind::Follow;
  EngineId engine;
  std::unique_ptr<Order> order = nullptr;  // to follow
};

struct Followed {
  std::unique_ptr<Follower> follower;
  Instant due = Instant::max();  // as in the queue of deadlines
};

std::optional<std::uint32_t> told_block_size(const EngineStatus& status) {
  if (!status.sequence) return std::nullopt;  // a configured size that no event has confirmed
  return status.block_size_conflict ? status.block_size_conflict : status.block_size;
}

// The first of each: an engine newer than this build repeats them.
void log_unknown(const EngineStatus& before, const EngineStatus& now) {
  const LogField engine{"engine", now.engine.value};
  const auto begins = [&](std::uint64_t events::NormaliserStatistics::*count) {
    return before.normaliser.*count == 0 && now.normaliser.*count > 0;
  };
  if (begins(&events::NormaliserStatistics::ignored_type)) {
    log(LogLevel::Warn,
        "KV events of an unknown type: blocks they withdraw stay claimed until the audit finds "
        "them; update the router",
        {engine});
  }
  if (begins(&events::NormaliserStatistics::unknown_field)) {
    log(LogLevel::Warn,
        "KV events with unknown fields: blocks whose content they may name are not counted; "
        "update the router",
        {engine});
  }
  if (begins(&events::NormaliserStatistics::groups_refused)) {
    log(LogLevel::Warn, "KV events of more cache groups than are followed", {engine});
  }
}

void log_changes(const EngineStatus& before, const EngineStatus& now) {
  const LogField engine{"engine", now.engine.value};
  if (now.block_size_conflict && before.block_size_conflict != now.block_size_conflict) {
    log(LogLevel::Warn, "KV events contradict the block size: engine excluded from overlap",
        {engine, {"block_size", *now.block_size_conflict}});
  }
  if (before.block_size_conflict && !now.block_size_conflict) {
    log(LogLevel::Warn, "KV events agree with the block size again", {engine});
  }
  if (before.undecodable_messages == 0 && now.undecodable_messages > 0) {
    log(LogLevel::Warn, "KV events cannot be decoded: the engine's blocks are forgotten", {engine});
  }
  if (before.health != now.health) {
    const bool is_bad = now.health == EngineHealth::Disconnected ||
                        now.health == EngineHealth::AddressInUse ||
                        now.health == EngineHealth::OtherRank;
    log(is_bad ? LogLevel::Warn : LogLevel::Info, "KV events of an engine",
        {engine,
         {"verified", now.health == EngineHealth::Verified},
         {"reason", reason_of(now.health)}});
  }
  if (before.stream.relearns != now.stream.relearns) {
    log(LogLevel::Warn, "the blocks of an engine are forgotten and learned anew", {engine});
  }
}

Error no_descriptors() {
  return internal_error("KV events: no file descriptors left: raise the limit of open files");
}

}  // namespace

struct EventSubscriber::State {
  State(const SubscriberOptions& with, const keys::Scheme& keys, index::PrefixIndex& into,
        const Clock& time)
      : options(with), scheme(keys), index(into), clock(time), context(open_context()) {}

  void push(Command command);
  void run(const std::stop_token& stop);
  std::vector<Command> take_commands();
  void carry_out(Command& command);
  Result<Done> follow(EngineId engine, Order& order);
  void forget(EngineId engine);
  void read(std::uint64_t token);
  void meet_deadlines();
  [[nodiscard]] std::int64_t wait_ms() const;
  void settle(EngineId engine, Followed& followed);
  void publish(const EngineStatus& status);

  const SubscriberOptions options;
  const keys::Scheme& scheme;
  index::PrefixIndex& index;
  const Clock& clock;
  const ZmqContext context;

  mutable std::mutex mutex;  // guards the next two; held for memory work only
  std::vector<Command> commands;
  std::map<EngineId, EngineStatus> statuses;  // of all engines followed

  std::atomic<Instant> turn_began = kNoTurn;

  // The thread's own.
  ZmqPoller poller;
  Multipart message;
  std::map<EngineId, Followed> followers;
  std::set<std::pair<Instant, EngineId>> deadlines;  // of the followers that have one

  std::optional<WorkerThread> thread;  // ends before all of the above
};

void EventSubscriber::State::push(Command command) {
  {
    const std::lock_guard lock(mutex);
    commands.push_back(std::move(command));
  }
  poller.wake();
}

// Sockets are closed on the thread that opened them.
void EventSubscriber::State::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (auto& command : take_commands()) carry_out(command);
    turn_began = kNoTurn;
    const auto tokens = poller.wait(wait_ms());
    turn_began = clock.now();
    for (const std::uint64_t token : tokens) read(token);
    meet_deadlines();
  }
  followers.clear();
  for (auto& command : take_commands()) {
    if (command.order) command.order->done.set_value(internal_error("KV events: stopping"));
  }
}

std::vector<Command> EventSubscriber::State::take_commands() {
  std::vector<Command> taken;
  const std::lock_guard lock(mutex);
  taken.swap(commands);
  return taken;
}

void EventSubscriber::State::carry_out(Command& command) {
  if (command.kind == Command::Kind::Follow) {
    auto done = follow(command.engine, *command.order);
    command.order->done.set_value(std::move(done));
    return;
  }
  const auto entry = followers.find(command.engine);
  if (entry == followers.end()) return;
  if (command.kind == Command::Kind::Forget) {
    forget(command.engine);
    return;
  }
  entry->second.follower->relearn(command.kind == Command::Kind::RelearnByReplay);
  settle(command.engine, entry->second);
}

Result<Done> EventSubscriber::State::follow(EngineId engine, Order& order) {
  auto stream = options.stream;
  stream.replay_available = order.endpoints.replay.has_value();
  events::EngineFeed feed(std::move(order.normaliser), stream, scheme, index);
  const Follower::Shared shared{.context = context.get(),
                                .poller = poller,
                                .message = message,
                                .clock = clock,
                                .options = options.follow};
  auto follower = SL_TRY(Follower::open(shared, std::move(order.endpoints), std::move(feed)));
  {
    const std::lock_guard lock(mutex);
    SL_CHECK(statuses.emplace(engine, EngineStatus{.engine = engine}).second);
  }
  auto& followed = followers[engine];
  followed.follower = std::move(follower);
  settle(engine, followed);
  return Done{};
}

void EventSubscriber::State::forget(EngineId engine) {
  const auto entry = followers.find(engine);
  deadlines.erase({entry->second.due, engine});
  // First: what the follower leaves to the index, that seeks among the blocks of all engines.
  entry->second.follower->forget();
  followers.erase(entry);
  index.drop(engine);
}

void EventSubscriber::State::read(std::uint64_t token) {
  const auto entry = followers.find(Follower::engine_of(token));
  if (entry == followers.end()) return;
  entry->second.follower->read(token);
  settle(entry->first, entry->second);
}

void EventSubscriber::State::meet_deadlines() {
  const auto now = clock.now();
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    const auto engine = deadlines.begin()->second;
    followers[engine].follower->meet_deadline();
    settle(engine, followers[engine]);
  }
}

// Milliseconds to the next deadline, -1 for none.
std::int64_t EventSubscriber::State::wait_ms() const {
  if (deadlines.empty()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadlines.begin()->first - clock.now());
  return std::max<std::int64_t>(left.count(), 0);
}

// After anything was done to a follower.
void EventSubscriber::State::settle(EngineId engine, Followed& followed) {
  const auto due = followed.follower->deadline();
  if (due != followed.due) {
    deadlines.erase({followed.due, engine});
    if (due != Instant::max()) deadlines.insert({due, engine});
    followed.due = due;
  }
  publish(followed.follower->status());
}

void EventSubscriber::State::publish(const EngineStatus& status) {
  EngineStatus before;
  {
    const std::lock_guard lock(mutex);
    const auto entry = statuses.find(status.engine);
    if (entry == statuses.end()) return;  // no longer followed
    before = std::exchange(entry->second, status);
  }
  log_changes(before, status);
  log_unknown(before, status);
  // A conflict may end, by a restart, with the size that was in conflict.
  const bool is_news = before.health != status.health ||
                       told_block_size(before) != told_block_size(status) ||
                       before.block_size_conflict != status.block_size_conflict;
  if (is_news && options.on_change) options.on_change(status);
}

Result<std::unique_ptr<EventSubscriber>> EventSubscriber::create(const SubscriberOptions& options,
                                                                 const keys::Scheme& scheme,
                                                                 index::PrefixIndex& index,
                                                                 const Clock& clock) {
  auto state = std::make_unique<State>(options, scheme, index, clock);
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

Result<Done> EventSubscriber::add(const EngineEndpoints& endpoints,
                                  events::NormaliserOptions engine) {
  const auto id = engine.engine;
  auto order = std::make_unique<Order>();
  order->endpoints = endpoints;
  order->normaliser = std::move(engine);
  auto done = order->done.get_future();
  state_->push({.kind = Command::Kind::Follow, .engine = id, .order = std::move(order)});
  return done.get();
}

void EventSubscriber::remove(EngineId engine) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->statuses.erase(engine) == 0) return;
  }
  state_->push({.kind = Command::Kind::Forget, .engine = engine});
}

void EventSubscriber::relearn(EngineId engine, bool replay) {
  const auto kind = replay ? Command::Kind::RelearnByReplay : Command::Kind::Relearn;
  state_->push({.kind = kind, .engine = engine});
}

Duration EventSubscriber::turn_age() const {
  const Instant began = state_->turn_began;
  return began == kNoTurn ? Duration::zero() : state_->clock.now() - began;
}

std::optional<EngineStatus> EventSubscriber::status(EngineId engine) const {
  const std::lock_guard lock(state_->mutex);
  const auto entry = state_->statuses.find(engine);
  if (entry == state_->statuses.end()) return std::nullopt;
  return entry->second;
}

std::vector<EngineStatus> EventSubscriber::statuses() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<EngineStatus> all;
  for (const auto& [engine, status] : state_->statuses) all.push_back(status);
  return all;
}

}  // namespace sightline::subscriber
