// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/subscriber/zmq_subscriber.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/runtime/worker_thread.h"

#include "router/subscriber/zmq_socket.h"

namespace sightline::subscriber {

namespace {

constexpr int kMessagesPerTurn = 256;  // of one socket before the others have their turn
// Of a replay: its answers must not be lost.
constexpr int kReplayMessagesMax = 100'000;
// libzmq gives a connection up for good when the peer breaks the protocol or a limit.
constexpr std::chrono::seconds kReopenAfter{1};

// One engine, on the subscriber's thread.
struct Follower {
  EngineEndpoints endpoints;
  events::EngineFeed feed;
  EventsSocket events;
  ZmqSocket replay;  // while a replay runs
  Instant replay_deadline{};
  bool connected = false;
  bool connected_before = false;
  std::uint64_t connections_lost = 0;
  std::optional<Instant> reopen_at = std::nullopt;
};

struct Command {
  enum class Kind : std::uint8_t { Follow, Forget, Relearn, RelearnByReplay };
  Kind kind = Kind::Follow;
  EngineId engine;
  std::unique_ptr<Follower> follower = nullptr;  // to follow
};

events::EngineHealth health_of(const Follower& follower) {
  using events::EngineHealth;
  if (!follower.connected) {
    return follower.connected_before ? EngineHealth::Disconnected : EngineHealth::Waiting;
  }
  return follower.feed.replaying() ? EngineHealth::Replaying : EngineHealth::Verified;
}

std::optional<std::uint32_t> told_block_size(const events::EngineStatus& status) {
  if (!status.sequence) return std::nullopt;  // a configured size that no event has confirmed
  return status.block_size_conflict ? status.block_size_conflict : status.block_size;
}

void log_changes(const events::EngineStatus& before, const events::EngineStatus& now) {
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
    const bool is_lost = now.health == events::EngineHealth::Disconnected;
    log(is_lost ? LogLevel::Warn : LogLevel::Info, "KV events of an engine",
        {engine,
         {"verified", now.health == events::EngineHealth::Verified},
         {"reason", reason_of(now.health)}});
  }
  if (before.stream.relearns != now.stream.relearns) {
    log(LogLevel::Warn, "the blocks of an engine are forgotten and learned anew", {engine});
  }
}

}  // namespace

struct EventSubscriber::State {
  State(const SubscriberOptions& with, const keys::Scheme& keys, index::PrefixIndex& into,
        const Clock& time)
      : options(with), scheme(keys), index(into), clock(time), context(open_context()) {}

  void push(Command command);
  void run(const std::stop_token& stop);
  void take_commands();
  void carry_out(Command& command);
  void wait_and_read();
  [[nodiscard]] std::int64_t wait_ms() const;
  void read(Follower& follower, const void* socket);
  void read_links(Follower& follower);
  void read_events(Follower& follower);
  void read_replay(Follower& follower);
  void meet_deadlines();
  void reopen(Follower& follower);
  void ask_replay(Follower& follower, std::optional<std::uint64_t> from);
  void publish(const Follower& follower);
  [[nodiscard]] Result<EventsSocket> open_events(const EngineEndpoints& endpoints) const {
    return EventsSocket::open(context.get(), endpoints.events, endpoints.bind,
                              {options.receive_messages_max, options.frame_bytes_max});
  }
  [[nodiscard]] Result<ZmqSocket> open_replay(const EngineEndpoints& endpoints) const {
    return open_replay_socket(context.get(), *endpoints.replay,
                              {kReplayMessagesMax, options.frame_bytes_max});
  }

  const SubscriberOptions options;
  const keys::Scheme& scheme;
  index::PrefixIndex& index;
  const Clock& clock;
  const ZmqContext context;
  const WakeUp wake_up;  // set when commands wait, or at the end

  mutable std::mutex mutex;  // guards the next two; held for memory work only
  std::vector<Command> commands;
  std::map<EngineId, events::EngineStatus> statuses;  // of all engines followed

  std::map<EngineId, std::unique_ptr<Follower>> followers;  // the thread's own
  Multipart message;                                        // the thread's own
  std::optional<WorkerThread> thread;                       // ends before all of the above
};

void EventSubscriber::State::push(Command command) {
  {
    const std::lock_guard lock(mutex);
    commands.push_back(std::move(command));
  }
  wake_up.wake();
}

void EventSubscriber::State::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    take_commands();
    wait_and_read();
    meet_deadlines();
  }
}

void EventSubscriber::State::take_commands() {
  wake_up.clear();
  std::vector<Command> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(commands);
  }
  for (auto& command : taken) carry_out(command);
}

void EventSubscriber::State::carry_out(Command& command) {
  if (command.kind == Command::Kind::Follow) {
    auto& follower = *(followers[command.engine] = std::move(command.follower));
    ask_replay(follower, follower.feed.start());
    publish(follower);
    return;
  }
  const auto entry = followers.find(command.engine);
  if (entry == followers.end()) return;
  auto& follower = *entry->second;
  if (command.kind == Command::Kind::Forget) {
    followers.erase(entry);
    index.drop(command.engine);
    return;
  }
  const bool replay = command.kind == Command::Kind::RelearnByReplay;
  const auto from = follower.feed.relearn(replay, clock.wall());
  if (!follower.feed.replaying()) follower.replay.reset();
  ask_replay(follower, from);
  publish(follower);
}

void EventSubscriber::State::wait_and_read() {
  std::vector<void*> sockets;
  std::vector<Follower*> owners;
  for (auto& [engine, follower] : followers) {
    // Links first: a reconnect is known before the messages that came over it.
    for (void* socket :
         {follower->events.links(), follower->events.messages(), follower->replay.get()}) {
      if (socket == nullptr) continue;
      sockets.push_back(socket);
      owners.push_back(follower.get());
    }
  }
  const auto readable = wait_readable(wake_up, sockets, wait_ms());
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (readable[i]) read(*owners[i], sockets[i]);
  }
}

// Milliseconds to the next deadline, -1 for none.
std::int64_t EventSubscriber::State::wait_ms() const {
  auto deadline = Instant::max();
  for (const auto& [engine, follower] : followers) {
    if (follower->replay) deadline = std::min(deadline, follower->replay_deadline);
    if (follower->reopen_at) deadline = std::min(deadline, *follower->reopen_at);
  }
  if (deadline == Instant::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now());
  return std::max<std::int64_t>(left.count(), 0);
}

void EventSubscriber::State::read(Follower& follower, const void* socket) {
  if (socket == follower.events.links()) {
    read_links(follower);
  } else if (socket == follower.events.messages()) {
    read_events(follower);
  } else if (socket == follower.replay.get()) {
    read_replay(follower);
  }
  publish(follower);
}

void EventSubscriber::State::read_links(Follower& follower) {
  while (const auto event = follower.events.next_link_event()) {
    if (follower.connected && *event == LinkEvent::Lost) ++follower.connections_lost;
    follower.connected = *event == LinkEvent::Up;
    follower.reopen_at.reset();
    if (*event == LinkEvent::Lost && !follower.endpoints.bind) {
      follower.reopen_at = clock.now() + kReopenAfter;
    }
    if (*event != LinkEvent::Up) continue;
    // The first connection's messages are already being asked for, or nobody can be asked.
    const bool asked =
        !follower.connected_before && (follower.feed.replaying() || !follower.endpoints.replay);
    follower.connected_before = true;
    if (!asked) ask_replay(follower, follower.feed.reconnected(clock.wall()));
  }
}

void EventSubscriber::State::read_events(Follower& follower) {
  for (int i = 0; i < kMessagesPerTurn && message.receive(follower.events.messages()); ++i) {
    ask_replay(follower, follower.feed.live(message.frames(), clock.wall()));
  }
}

void EventSubscriber::State::read_replay(Follower& follower) {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    if (!follower.replay || !message.receive(follower.replay.get())) return;
    follower.replay_deadline = clock.now() + options.replay_timeout;
    const auto from = follower.feed.replayed(message.frames(), clock.wall());
    if (!follower.feed.replaying()) follower.replay.reset();
    ask_replay(follower, from);
  }
}

void EventSubscriber::State::meet_deadlines() {
  const auto now = clock.now();
  for (auto& [engine, follower] : followers) {
    if (follower->replay && now >= follower->replay_deadline) {
      follower->replay.reset();
      ask_replay(*follower, follower->feed.replay_timed_out(clock.wall()));
      publish(*follower);
    }
    if (follower->reopen_at && now >= *follower->reopen_at) reopen(*follower);
  }
}

void EventSubscriber::State::reopen(Follower& follower) {
  auto socket = open_events(follower.endpoints);
  if (!socket) {
    follower.reopen_at = clock.now() + kReopenAfter;
    return;
  }
  follower.reopen_at.reset();
  follower.events = std::move(*socket);
}

// A socket per request: what is left of an earlier answer goes away with its socket.
void EventSubscriber::State::ask_replay(Follower& follower, std::optional<std::uint64_t> from) {
  while (from) {
    auto socket = open_replay(follower.endpoints);
    if (socket && send_replay_request(socket->get(), *from)) {
      follower.replay = std::move(*socket);
      follower.replay_deadline = clock.now() + options.replay_timeout;
      return;
    }
    follower.replay.reset();
    from = follower.feed.replay_timed_out(clock.wall());
  }
}

void EventSubscriber::State::publish(const Follower& follower) {
  auto status = follower.feed.status();
  status.health = health_of(follower);
  status.connections_lost = follower.connections_lost;
  events::EngineStatus before;
  {
    const std::lock_guard lock(mutex);
    const auto entry = statuses.find(status.engine);
    if (entry == statuses.end()) return;  // no longer followed
    before = std::exchange(entry->second, status);
  }
  log_changes(before, status);
  const bool is_news =
      before.health != status.health || told_block_size(before) != told_block_size(status);
  if (is_news && options.on_change) options.on_change(status);
}

Result<std::unique_ptr<EventSubscriber>> EventSubscriber::create(const SubscriberOptions& options,
                                                                 const keys::Scheme& scheme,
                                                                 index::PrefixIndex& index,
                                                                 const Clock& clock) {
  auto state = std::make_unique<State>(options, scheme, index, clock);
  if (!state->context || !state->wake_up.ok()) {
    return internal_error("KV events: no file descriptors left: raise the limit of open files");
  }
  State* shared = state.get();  // the thread ends before the state does
  state->thread.emplace("kv-events", [shared](const std::stop_token& stop) { shared->run(stop); });
  return std::make_unique<EventSubscriber>(std::move(state));
}

EventSubscriber::EventSubscriber(std::unique_ptr<State> state) : state_(std::move(state)) {}

EventSubscriber::~EventSubscriber() {
  state_->thread->request_stop();
  state_->wake_up.wake();
}

Result<Done> EventSubscriber::add(const EngineEndpoints& endpoints,
                                  events::NormaliserOptions engine) {
  const auto id = engine.engine;
  auto stream = state_->options.stream;
  stream.replay_available = endpoints.replay.has_value();
  // A bad replay endpoint is refused now rather than at the first gap.
  if (endpoints.replay) SL_TRY(state_->open_replay(endpoints));
  auto events = SL_TRY(state_->open_events(endpoints));
  auto follower = std::make_unique<Follower>(
      Follower{.endpoints = endpoints,
               .feed = events::EngineFeed(std::move(engine), stream, state_->scheme, state_->index),
               .events = std::move(events),
               .replay = nullptr});
  {
    const std::lock_guard lock(state_->mutex);
    SL_CHECK(state_->statuses.emplace(id, follower->feed.status()).second);
  }
  state_->push({.kind = Command::Kind::Follow, .engine = id, .follower = std::move(follower)});
  return Done{};
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

std::optional<events::EngineStatus> EventSubscriber::status(EngineId engine) const {
  const std::lock_guard lock(state_->mutex);
  const auto entry = state_->statuses.find(engine);
  if (entry == state_->statuses.end()) return std::nullopt;
  return entry->second;
}

std::vector<events::EngineStatus> EventSubscriber::statuses() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<events::EngineStatus> all;
  for (const auto& [engine, status] : state_->statuses) all.push_back(status);
  return all;
}

}  // namespace sightline::subscriber
