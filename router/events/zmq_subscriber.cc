// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/events/zmq_subscriber.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/runtime/worker_thread.h"

namespace sightline::events {

namespace {

constexpr std::size_t kFramesMax = 8;       // per message; engines send 3 or 4
constexpr int kMessagesPerTurn = 256;       // of one socket before the others have their turn
constexpr int kReconnectFirst_ms = 100;     // after a lost connection,
constexpr int kReconnectLongest_ms = 2000;  // doubled up to this
constexpr int kReplayMessages = 100'000;    // ZMQ_RCVHWM of a replay: its answers must not be lost

struct CloseContext {
  void operator()(void* context) const { zmq_ctx_term(context); }
};
struct CloseSocket {
  void operator()(void* socket) const { zmq_close(socket); }
};
using Context = std::unique_ptr<void, CloseContext>;
using Socket = std::unique_ptr<void, CloseSocket>;

// The frames of one received message; more than kFramesMax are read and dropped.
class Multipart {
 public:
  Multipart() {
    for (auto& part : parts_) zmq_msg_init(&part);
  }
  ~Multipart() {
    for (auto& part : parts_) zmq_msg_close(&part);
  }
  Multipart(const Multipart&) = delete;
  Multipart& operator=(const Multipart&) = delete;

  // False when no whole message is waiting.
  bool receive(void* socket) {
    count_ = 0;
    for (bool more = true; more;) {
      auto& part = parts_[std::min(count_, kFramesMax)];
      if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0) return false;
      if (count_ < kFramesMax) {
        views_[count_++] = {static_cast<const std::uint8_t*>(zmq_msg_data(&part)),
                            zmq_msg_size(&part)};
      }
      more = zmq_msg_more(&part) != 0;
    }
    return true;
  }

  [[nodiscard]] std::span<const ByteView> frames() const { return {views_.data(), count_}; }

 private:
  std::array<zmq_msg_t, kFramesMax + 1> parts_{};  // the last one takes what is dropped
  std::array<ByteView, kFramesMax> views_{};
  std::size_t count_ = 0;
};

void set_option(void* socket, int option, int value) {
  SL_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

// Nothing when the process has no sockets left.
Socket open_socket(void* context, int type, const SubscriberOptions& options) {
  Socket socket(zmq_socket(context, type));
  if (!socket) return socket;
  const auto frame_bytes_max = static_cast<std::int64_t>(options.frame_bytes_max);
  SL_CHECK(zmq_setsockopt(socket.get(), ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof frame_bytes_max) ==
           0);
  set_option(socket.get(), ZMQ_LINGER, 0);
  set_option(socket.get(), ZMQ_IPV6, 1);
  set_option(socket.get(), ZMQ_TCP_KEEPALIVE, 1);
  set_option(socket.get(), ZMQ_RECONNECT_IVL, kReconnectFirst_ms);
  set_option(socket.get(), ZMQ_RECONNECT_IVL_MAX, kReconnectLongest_ms);
  set_option(socket.get(), ZMQ_RCVHWM,
             type == ZMQ_SUB ? options.receive_messages_max : kReplayMessages);
  return socket;
}

Error endpoint_error(std::string_view which) {
  const int reason = zmq_errno();
  const std::string hint = reason == EADDRINUSE
                               ? "another engine or process listens there; give each engine its own"
                               : "write it as tcp://host:port, tcp://[address]:port or ipc://path";
  return client_error(
      ErrorCode::InvalidArgument,
      std::string(which) + " endpoint cannot be used (" + zmq_strerror(reason) + "): " + hint);
}

Result<Socket> open_events(void* context, const EngineEndpoints& endpoints,
                           const SubscriberOptions& options) {
  auto socket = open_socket(context, ZMQ_SUB, options);
  if (!socket) return internal_error("no ZMQ sockets left: raise the limit of open files");
  SL_CHECK(zmq_setsockopt(socket.get(), ZMQ_SUBSCRIBE, "", 0) == 0);
  const auto* address = endpoints.events.c_str();
  const int status =
      endpoints.bind ? zmq_bind(socket.get(), address) : zmq_connect(socket.get(), address);
  if (status != 0) return endpoint_error("events");
  return socket;
}

Result<Socket> open_replay(void* context, const std::string& endpoint,
                           const SubscriberOptions& options) {
  auto socket = open_socket(context, ZMQ_DEALER, options);
  if (!socket) return internal_error("no ZMQ sockets left: raise the limit of open files");
  if (zmq_connect(socket.get(), endpoint.c_str()) != 0) return endpoint_error("replay");
  return socket;
}

// One engine, on the subscriber's thread.
struct Follower {
  EngineEndpoints endpoints;
  EngineFeed feed;
  Socket events;
  Socket replay;  // while a replay runs
  Instant replay_deadline{};
};

// Follow this engine, or (nothing) no longer follow that one.
struct Command {
  EngineId engine;
  std::unique_ptr<Follower> follower;
};

void log_changes(const EngineStatus& before, const EngineStatus& now) {
  const std::vector<LogField> engine = {{"engine", now.engine.value}};
  if (now.block_size_conflict && before.block_size_conflict != now.block_size_conflict) {
    log(LogLevel::Warn, "KV events contradict the block size: engine excluded from overlap",
        {{"engine", now.engine.value}, {"block_size", *now.block_size_conflict}});
  }
  if (before.block_size_conflict && !now.block_size_conflict) {
    log(LogLevel::Warn, "KV events agree with the block size again", engine);
  }
  if (before.undecodable_messages == 0 && now.undecodable_messages > 0) {
    log(LogLevel::Warn, "KV events cannot be decoded: the engine's blocks are forgotten", engine);
  }
}

}  // namespace

struct EventSubscriber::State {
  State(const SubscriberOptions& opts, const keys::Scheme& s, index::PrefixIndex& i, const Clock& c)
      : options(opts),
        scheme(s),
        index(i),
        clock(c),
        context(zmq_ctx_new()),
        wake(eventfd(0, EFD_NONBLOCK)) {}
  ~State() {
    thread.reset();
    followers.clear();
    commands.clear();
    if (wake >= 0) close(wake);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void push(Command command);
  void run(const std::stop_token& stop);
  void take_commands();
  void wait();
  [[nodiscard]] long wait_ms() const;
  void read_events(Follower& follower);
  void read_replay(Follower& follower);
  void end_late_replays();
  void ask_replay(Follower& follower, std::optional<std::uint64_t> from);
  void publish(const Follower& follower);

  const SubscriberOptions options;
  const keys::Scheme& scheme;
  index::PrefixIndex& index;
  const Clock& clock;
  const Context context;
  const int wake;  // readable: commands wait, or the end

  mutable std::mutex mutex;  // guards the next two; held for memory work only
  std::vector<Command> commands;
  std::map<EngineId, EngineStatus> statuses;  // of all engines followed

  std::map<EngineId, std::unique_ptr<Follower>> followers;  // the thread's own
  Multipart message;                                        // the thread's own
  std::optional<WorkerThread> thread;
};

void EventSubscriber::State::push(Command command) {
  {
    const std::lock_guard lock(mutex);
    commands.push_back(std::move(command));
  }
  eventfd_write(wake, 1);
}

void EventSubscriber::State::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    take_commands();
    wait();
    end_late_replays();
  }
}

void EventSubscriber::State::take_commands() {
  eventfd_t count = 0;
  eventfd_read(wake, &count);
  std::vector<Command> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(commands);
  }
  for (auto& command : taken) {
    if (!command.follower) {
      followers.erase(command.engine);
      index.drop(command.engine);
      continue;
    }
    auto& follower = *(followers[command.engine] = std::move(command.follower));
    ask_replay(follower, follower.feed.start());
    publish(follower);
  }
}

// Until a socket, the wake-up or a deadline is due; then reads what is there.
void EventSubscriber::State::wait() {
  std::vector<zmq_pollitem_t> items = {
      {.socket = nullptr, .fd = wake, .events = ZMQ_POLLIN, .revents = 0}};
  std::vector<Follower*> owners = {nullptr};
  for (auto& [engine, follower] : followers) {
    for (void* socket : {follower->events.get(), follower->replay.get()}) {
      if (socket == nullptr) continue;
      items.push_back({.socket = socket, .fd = 0, .events = ZMQ_POLLIN, .revents = 0});
      owners.push_back(follower.get());
    }
  }
  if (zmq_poll(items.data(), static_cast<int>(items.size()), wait_ms()) <= 0) return;
  for (std::size_t i = 1; i < items.size(); ++i) {
    if (items[i].revents == 0) continue;
    Follower& follower = *owners[i];
    if (items[i].socket == follower.events.get()) {
      read_events(follower);
    } else if (items[i].socket == follower.replay.get()) {
      read_replay(follower);
    }
    publish(follower);
  }
}

long EventSubscriber::State::wait_ms() const {
  auto deadline = Instant::max();
  for (const auto& [engine, follower] : followers) {
    if (follower->replay) deadline = std::min(deadline, follower->replay_deadline);
  }
  if (deadline == Instant::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now());
  return static_cast<long>(std::max<std::int64_t>(left.count(), 0));
}

void EventSubscriber::State::read_events(Follower& follower) {
  for (int i = 0; i < kMessagesPerTurn && message.receive(follower.events.get()); ++i) {
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

void EventSubscriber::State::end_late_replays() {
  const auto now = clock.now();
  for (auto& [engine, follower] : followers) {
    if (!follower->replay || now < follower->replay_deadline) continue;
    follower->replay.reset();
    ask_replay(*follower, follower->feed.replay_timed_out(clock.wall()));
    publish(*follower);
  }
}

// A socket per request: what is left of an earlier answer goes away with its socket.
void EventSubscriber::State::ask_replay(Follower& follower, std::optional<std::uint64_t> from) {
  while (from) {
    auto socket = open_replay(context.get(), *follower.endpoints.replay, options);
    const auto start = replay_start(*from);
    if (socket && zmq_send(socket->get(), "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
        zmq_send(socket->get(), start.data(), start.size(), ZMQ_DONTWAIT) >= 0) {
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
  EngineStatus before;
  {
    const std::lock_guard lock(mutex);
    const auto entry = statuses.find(status.engine);
    if (entry == statuses.end()) return;  // no longer followed
    before = std::exchange(entry->second, status);
  }
  log_changes(before, status);
}

Result<std::unique_ptr<EventSubscriber>> EventSubscriber::create(const SubscriberOptions& options,
                                                                 const keys::Scheme& scheme,
                                                                 index::PrefixIndex& index,
                                                                 const Clock& clock) {
  auto state = std::make_unique<State>(options, scheme, index, clock);
  if (!state->context || state->wake < 0) {
    return internal_error("KV events: no file descriptors left: raise the limit of open files");
  }
  zmq_ctx_set(state->context.get(), ZMQ_MAX_SOCKETS,
              zmq_ctx_get(state->context.get(), ZMQ_SOCKET_LIMIT));
  State* shared = state.get();  // the thread ends before the state does
  state->thread.emplace("kv-events", [shared](const std::stop_token& stop) { shared->run(stop); });
  return std::make_unique<EventSubscriber>(std::move(state));
}

EventSubscriber::EventSubscriber(std::unique_ptr<State> state) : state_(std::move(state)) {}

EventSubscriber::~EventSubscriber() {
  state_->thread->request_stop();
  eventfd_write(state_->wake, 1);
}

Result<Done> EventSubscriber::add(const EngineEndpoints& endpoints, NormaliserOptions engine) {
  const auto id = engine.engine;
  auto stream = state_->options.stream;
  stream.replay_available = endpoints.replay.has_value();
  if (endpoints.replay) {
    // Refused now rather than at the first gap.
    SL_TRY(open_replay(state_->context.get(), *endpoints.replay, state_->options));
  }
  // libzmq lets a socket move to another thread; the command's lock is the fence it asks for.
  auto socket = SL_TRY(open_events(state_->context.get(), endpoints, state_->options));
  auto follower = std::make_unique<Follower>(
      Follower{.endpoints = endpoints,
               .feed = EngineFeed(std::move(engine), stream, state_->scheme, state_->index),
               .events = std::move(socket),
               .replay = nullptr});
  {
    const std::lock_guard lock(state_->mutex);
    SL_CHECK(state_->statuses.emplace(id, follower->feed.status()).second);
  }
  state_->push({.engine = id, .follower = std::move(follower)});
  return Done{};
}

void EventSubscriber::remove(EngineId engine) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->statuses.erase(engine) == 0) return;
  }
  state_->push({.engine = engine, .follower = nullptr});
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

}  // namespace sightline::events
