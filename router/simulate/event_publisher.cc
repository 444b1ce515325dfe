// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/simulate/event_publisher.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/runtime/worker_thread.h"

namespace sightline::simulate {
namespace {

// vLLM's default for messages queued to one subscriber; beyond it they are lost to that one.
constexpr int kSendQueueMax = 100'000;
// A replay request has three frames and an identity of at most 255 bytes.
constexpr std::size_t kRequestFramesMax = 8;

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

// Binds and gives the port.
Result<std::uint16_t> bind(void* socket, const std::string& host, std::uint16_t port) {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  const std::string endpoint = "tcp://" + name + ":" + (port == 0 ? "*" : std::to_string(port));
  if (zmq_bind(socket, endpoint.c_str()) != 0) {
    return worker_error(ErrorCode::Unavailable,
                        "cannot bind " + endpoint + ": " + zmq_strerror(zmq_errno()) +
                            "; is another engine or simulator running?",
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
  // Neither PUB nor ROUTER waits for a peer; what a peer does not take is lost to it.
  zmq_send(socket, frame.data(), frame.size(), ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0));
}

std::vector<Bytes> receive(void* socket) {
  std::vector<Bytes> frames;
  int more = 1;
  while (more != 0) {
    zmq_msg_t message;
    zmq_msg_init(&message);
    const bool received = zmq_msg_recv(&message, socket, ZMQ_DONTWAIT) >= 0;
    if (received && frames.size() < kRequestFramesMax) {
      const auto* bytes = static_cast<const std::uint8_t*>(zmq_msg_data(&message));
      frames.emplace_back(bytes, bytes + zmq_msg_size(&message));
    }
    more = received ? zmq_msg_more(&message) : 0;
    zmq_msg_close(&message);
  }
  return frames;
}

// Big-endian, of any length, as Python's int.from_bytes; above 64 bits nothing is buffered.
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

struct Batch {
  std::uint64_t sequence = 0;
  std::shared_ptr<const Bytes> payload;
};

}  // namespace

struct EventPublisher::State {
  State(const Options& o, const Clock& c) : options(o), clock(c), context(zmq_ctx_new()) {}

  Result<Done> open();
  void serve_replays(const std::stop_token& stop);
  void answer(const std::vector<Bytes>& request);
  std::vector<Batch> batches_from(std::uint64_t sequence);

  const Options options;
  const Clock& clock;
  Context context;
  Socket events;
  Socket replay;
  std::uint16_t events_port = 0;
  std::uint16_t replay_port = 0;
  std::uint64_t next_sequence = 0;

  std::mutex mutex;  // guards buffer
  std::deque<Batch> buffer;

  int wake = -1;  // eventfd: readable when the thread is to stop
  std::optional<WorkerThread> thread;
};

Result<Done> EventPublisher::State::open() {
  events.reset(zmq_socket(context.get(), ZMQ_PUB));
  replay.reset(zmq_socket(context.get(), ZMQ_ROUTER));
  wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!events || !replay || wake < 0) return internal_error("no file descriptors left for sockets");
  for (void* socket : {events.get(), replay.get()}) {
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_IPV6, 1);
  }
  set(events.get(), ZMQ_SNDHWM, kSendQueueMax);
  set(replay.get(), ZMQ_SNDHWM, 0);  // an answer is bounded by the buffer
  events_port = SL_TRY(bind(events.get(), options.host, options.events_port));
  replay_port = SL_TRY(bind(replay.get(), options.host, options.replay_port));
  return Done{};
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
    if (simengine::replays_topic(options.format)) send(replay.get(), bytes_of(topic), true);
    send(replay.get(), frame_of(sequence), true);
    send(replay.get(), payload, false);
  };
  for (const Batch& batch : batches_from(sequence_of(request[2]))) {
    send_batch(options.topic, batch.sequence, *batch.payload);
  }
  send_batch("", UINT64_MAX, {});
}

std::vector<Batch> EventPublisher::State::batches_from(std::uint64_t sequence) {
  const std::lock_guard lock(mutex);
  if (buffer.empty() || sequence > buffer.back().sequence) return {};
  const std::uint64_t first = std::max(sequence, buffer.front().sequence);
  const auto begin = buffer.begin() + static_cast<std::ptrdiff_t>(first - buffer.front().sequence);
  return {begin, buffer.end()};
}

Result<std::unique_ptr<EventPublisher>> EventPublisher::create(const Options& options,
                                                               const Clock& clock) {
  auto state = std::make_unique<State>(options, clock);
  State& borrowed = *state;
  // From here on the destructor cleans up, whatever has been opened.
  auto publisher = std::make_unique<EventPublisher>(std::move(state));
  SL_TRY(borrowed.open());
  borrowed.thread.emplace("sim-replay",
                          [&borrowed](std::stop_token stop) { borrowed.serve_replays(stop); });
  return publisher;
}

EventPublisher::EventPublisher(std::unique_ptr<State> state) : state_(std::move(state)) {}

EventPublisher::~EventPublisher() {
  if (state_->thread) {
    state_->thread->request_stop();
    eventfd_write(state_->wake, 1);
    state_->thread.reset();
  }
  if (state_->wake >= 0) close(state_->wake);
}

void EventPublisher::publish(const std::vector<simengine::KvEvent>& events) {
  if (events.empty()) return;
  const std::chrono::duration<double> now = state_->clock.wall().time_since_epoch();
  const simengine::EventBatch batch{.timestamp_s = now.count(), .events = events, .rank = 0};
  auto payload = std::make_shared<const Bytes>(encode(batch, state_->options.format));
  const std::uint64_t sequence = state_->next_sequence++;
  send(state_->events.get(), bytes_of(state_->options.topic), true);
  send(state_->events.get(), frame_of(sequence), true);
  send(state_->events.get(), *payload, false);

  const std::lock_guard lock(state_->mutex);
  state_->buffer.push_back({sequence, std::move(payload)});
  if (state_->buffer.size() > state_->options.buffer_batches) state_->buffer.pop_front();
}

std::uint16_t EventPublisher::events_port() const { return state_->events_port; }
std::uint16_t EventPublisher::replay_port() const { return state_->replay_port; }

}  // namespace sightline::simulate
