// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/event_publisher.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/runtime/worker_thread.h"

namespace sightline::cluster {
namespace {

// vLLM's default for the messages that wait for one subscriber. A subscriber loses further
// messages.
constexpr int kSendQueueMax = 100'000;
// A replay request has three frames, and an identity of at most 255 bytes.
constexpr std::size_t kRequestFramesMax = 8;
// The shortest replay that can be truncated, in messages. Each third has a message.
constexpr std::size_t kCutReplayMin = 3;

struct ContextCloser {
  void operator()(void* context) const { zmq_ctx_term(context); }
};
struct SocketCloser {
  void operator()(void* socket) const { zmq_close(socket); }
};
using Context = std::unique_ptr<void, ContextCloser>;
using Socket = std::unique_ptr<void, SocketCloser>;

void set(void* socket, int option, int value) {
  SL_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

// Binds a socket and returns its port.
Result<std::uint16_t> bind(void* socket, const std::string& host, std::uint16_t port) {
  // An endpoint has an IPv6 address in brackets.
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  // For "*" the system chooses a free port.
  const std::string endpoint = "tcp://" + name + ":" + (port == 0 ? "*" : std::to_string(port));
  if (zmq_bind(socket, endpoint.c_str()) != 0) {
    return worker_error(ErrorCode::Unavailable,
                        "cannot bind " + endpoint + ": " + zmq_strerror(zmq_errno()) +
                            ". Is another engine or simulator running?",
                        false);
  }
  std::array<char, 256> bound{};
  std::size_t size = bound.size();
  SL_CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound.data(), &size) == 0);
  const std::string_view text(bound.data());
  const std::string_view digits = text.substr(text.rfind(':') + 1);
  std::uint16_t result = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), result);
  return result;
}

void send(void* socket, ByteView frame, bool more) {
  // PUB and ROUTER sockets wait for no peer. A peer loses messages that it does not take.
  zmq_send(socket, frame.data(), frame.size(), ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0));
}

std::vector<Bytes> receive(void* socket) {
  std::vector<Bytes> frames;
  int more = 1;
  while (more != 0) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    const bool received = zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) >= 0;
    // Frames beyond the limit are read and dropped. The next call then begins with a new message.
    if (received && frames.size() < kRequestFramesMax) {
      const auto* bytes = static_cast<const std::uint8_t*>(zmq_msg_data(&message));
      frames.emplace_back(bytes, bytes + zmq_msg_size(&message));
    }
    more = received ? zmq_msg_more(&message) : 0;
    zmq_msg_close(&message);
  }
  return frames;
}

// Reads a big-endian number of any length, as Python's int.from_bytes. Above 64 bits no batch is
// buffered.
std::uint64_t sequence_of(ByteView bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) {
    if (value > (UINT64_MAX >> 8U)) return UINT64_MAX;
    value = (value << 8U) | byte;
  }
  return value;
}

std::array<std::uint8_t, 8> frame_of(std::uint64_t sequence) {
  std::array<std::uint8_t, 8> frame{};
  store_be64(frame.data(), sequence);
  return frame;
}

using faults::EventMessage;

}  // namespace

struct EventPublisher::State {
  explicit State(const Options& o) : options(o), context(zmq_ctx_new()) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Result<Done> open();
  void send_live(const EventMessage& message);
  void serve_replays(const std::stop_token& stop);
  void answer(const std::vector<Bytes>& request);
  std::vector<EventMessage> messages_from(std::uint64_t sequence);

  const Options options;
  Context context;
  Socket events;
  Socket replay;
  std::uint16_t events_port = 0;
  std::uint16_t replay_port = 0;
  std::uint64_t next_sequence = 0;
  std::atomic<bool> cuts_replay = false;  // for the next replay

  Mutex mutex;
  std::deque<EventMessage> buffer SL_GUARDED_BY(mutex);  // in the order of sequence

  // An eventfd, which is readable when the thread must stop.
  int wake = -1;
  std::optional<WorkerThread> thread;
};

EventPublisher::State::~State() {
  if (thread) {
    thread->request_stop();
    eventfd_write(wake, 1);
    thread.reset();
  }
  if (wake >= 0) ::close(wake);
}

Result<Done> EventPublisher::State::open() {
  events.reset(zmq_socket(context.get(), ZMQ_PUB));
  if (options.with_replay) replay.reset(zmq_socket(context.get(), ZMQ_ROUTER));
  wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!events || (options.with_replay && !replay) || wake < 0)
    return internal_error("no file descriptors left for sockets");
  for (void* socket : {events.get(), replay.get()}) {
    if (socket == nullptr) continue;
    // Otherwise the end of the context waits for messages that were not sent.
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_IPV6, 1);
  }
  set(events.get(), ZMQ_SNDHWM, kSendQueueMax);
  events_port = SL_TRY(bind(events.get(), options.host, options.events_port));
  if (!replay) return Done{};
  // The buffer limits the size of an answer.
  set(replay.get(), ZMQ_SNDHWM, 0);
  replay_port = SL_TRY(bind(replay.get(), options.host, options.replay_port));
  thread.emplace("sim-replay", [this](std::stop_token stop) { serve_replays(stop); });
  return Done{};
}

void EventPublisher::State::send_live(const EventMessage& message) {
  send(events.get(), bytes_of(options.topic), true);
  send(events.get(), frame_of(message.sequence), true);
  send(events.get(), *message.payload, false);
}

void EventPublisher::State::serve_replays(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::array<zmq_pollitem_t, 2> items{
        {{replay.get(), 0, ZMQ_POLLIN, 0}, {nullptr, wake, ZMQ_POLLIN, 0}}};
    if (zmq_poll(items.data(), static_cast<int>(items.size()), -1) < 0) continue;
    if ((items[0].revents & ZMQ_POLLIN) != 0) answer(receive(replay.get()));
  }
}

void EventPublisher::State::answer(const std::vector<Bytes>& request) {
  if (request.size() != 3 || !request[1].empty()) return;
  const Bytes& identity = request[0];
  const auto send_batch = [&](std::string_view topic, std::uint64_t sequence, ByteView payload) {
    send(replay.get(), identity, true);
    send(replay.get(), {}, true);
    if (core::replays_topic(options.format)) send(replay.get(), bytes_of(topic), true);
    send(replay.get(), frame_of(sequence), true);
    send(replay.get(), payload, false);
  };
  const std::vector<EventMessage> messages = messages_from(sequence_of(request[2]));
  // As with a full socket queue: messages are lost without a report.
  const bool is_cut = messages.size() >= kCutReplayMin && cuts_replay.exchange(false);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const bool is_lost = is_cut && i >= messages.size() / 3 && i < messages.size() * 2 / 3;
    if (!is_lost) send_batch(options.topic, messages[i].sequence, *messages[i].payload);
  }
  if (!is_cut) send_batch("", UINT64_MAX, {});
}

std::vector<EventMessage> EventPublisher::State::messages_from(std::uint64_t sequence) {
  const MutexLock lock(mutex);
  const auto first = std::lower_bound(
      buffer.begin(), buffer.end(), sequence,
      [](const EventMessage& message, std::uint64_t from) { return message.sequence < from; });
  return {first, buffer.end()};
}

Result<std::unique_ptr<EventPublisher>> EventPublisher::create(const Options& options,
                                                               const Clock& clock) {
  auto publisher = std::make_unique<EventPublisher>(options, clock);
  SL_TRY(publisher->reopen());
  return publisher;
}

EventPublisher::EventPublisher(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

EventPublisher::~EventPublisher() = default;

void EventPublisher::close() { state_.reset(); }

Result<Done> EventPublisher::reopen() {
  auto state = std::make_unique<State>(options_);
  SL_TRY(state->open());
  state_ = std::move(state);
  options_.events_port = state_->events_port;
  options_.replay_port = state_->replay_port;
  return Done{};
}

void EventPublisher::publish(std::vector<core::KvEvent> events) {
  if (events.empty()) return;
  State& state = *state_;
  faults::EventFaults* const faults = options_.faults;
  EventMessage message{.sequence = state.next_sequence++, .payload = nullptr};
  if (faults != nullptr) {
    faults->distort(message.sequence, events);
    if (faults->cuts_replay(message.sequence)) state.cuts_replay = true;
  }
  const std::chrono::duration<double> now = clock_.wall().time_since_epoch();
  const core::EventBatch batch{.timestamp_s = now.count(), .events = events, .rank = options_.rank};
  message.payload = std::make_shared<const Bytes>(encode(batch, options_.format));
  const auto send_live = [&state](const EventMessage& sent) { state.send_live(sent); };
  // A concurrent replay must not lack a message that its client subscribed too late for.
  const MutexLock lock(state.mutex);
  if (faults == nullptr) {
    send_live(message);
  } else if (!faults->deliver(message, send_live)) {
    return;
  }
  state.buffer.push_back(std::move(message));
  if (state.buffer.size() > options_.buffer_batches) state.buffer.pop_front();
}

std::optional<std::uint64_t> EventPublisher::last_sequence() const {
  if (state_->next_sequence == 0) return std::nullopt;
  return state_->next_sequence - 1;
}

}  // namespace sightline::cluster
