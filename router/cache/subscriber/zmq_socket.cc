// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/zmq_socket.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <zmq.h>

#include "common/base/check.h"

#include "router/cache/events/stream.h"
#include "router/cache/subscriber/zmq_endpoint.h"

namespace sightline::subscriber {

namespace {

constexpr int kReconnectFirst_ms = 100;     // after a lost connection,
constexpr int kReconnectLongest_ms = 2000;  // doubled up to this
// A peer may accept a connection and send nothing: a frozen process, or a process without ZMQ.
constexpr int kHandshake_ms = 5000;
constexpr std::size_t kShortFrameMax = 255;  // bytes: ZMTP's header of a longer frame is longer
// The peer closes the connection after as much silence of the router.
constexpr int kHeartbeatLife_ms = 10'000;

void set_option(void* socket, int option, int value) {
  SL_CHECK(zmq_setsockopt(socket, option, &value, sizeof value) == 0);
}

Result<ZmqSocket> open_socket(void* context, int type, const SocketLimits& limits) {
  ZmqSocket socket(zmq_socket(context, type));
  if (!socket) return internal_error("no ZMQ sockets left: raise the limit of open files");
  const auto frame_bytes_max = static_cast<std::int64_t>(limits.frame_bytes_max);
  SL_CHECK(zmq_setsockopt(socket.get(), ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof frame_bytes_max) ==
           0);
  // An unsent request must not delay the close.
  set_option(socket.get(), ZMQ_LINGER, 0);
  set_option(socket.get(), ZMQ_IPV6, 1);
  set_option(socket.get(), ZMQ_TCP_KEEPALIVE, 1);
  set_option(socket.get(), ZMQ_RECONNECT_IVL, kReconnectFirst_ms);
  set_option(socket.get(), ZMQ_RECONNECT_IVL_MAX, kReconnectLongest_ms);
  set_option(socket.get(), ZMQ_RCVHWM, limits.messages_max);
  return socket;
}

Error endpoint_error(std::string_view which) {
  const int reason = zmq_errno();
  if (reason == EADDRINUSE) {
    return worker_error(
        ErrorCode::Unavailable,
        std::string(which) + " endpoint cannot be used (" + zmq_strerror(reason) +
            "): another engine or process listens there. Give each its own endpoint",
        true);
  }
  return endpoint_refused(which, zmq_strerror(reason));
}

// Opens a PAIR socket that receives reports about the subscriber's connections. Null: no sockets
// are left.
ZmqSocket open_monitor(void* context, void* subscriber) {
  static std::atomic<std::uint64_t> count = 0;
  const auto address = "inproc://links-" + std::to_string(count++);
  constexpr int kEvents = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                          ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED;
  if (zmq_socket_monitor(subscriber, address.c_str(), kEvents) != 0) return nullptr;
  ZmqSocket monitor(zmq_socket(context, ZMQ_PAIR));
  if (!monitor) return nullptr;
  set_option(monitor.get(), ZMQ_LINGER, 0);
  set_option(monitor.get(), ZMQ_RCVHWM, 0);  // libzmq's own thread writes to it and must not wait
  if (zmq_connect(monitor.get(), address.c_str()) != 0) return nullptr;
  return monitor;
}

}  // namespace

void CloseContext::operator()(void* context) const { zmq_ctx_term(context); }
void CloseSocket::operator()(void* socket) const { zmq_close(socket); }

ZmqContext open_context() {
  ZmqContext context(zmq_ctx_new());
  if (context) {
    const int limit = zmq_ctx_get(context.get(), ZMQ_SOCKET_LIMIT);
    zmq_ctx_set(context.get(), ZMQ_MAX_SOCKETS, limit);
  }
  return context;
}

Result<ZmqSocket> open_replay_socket(void* context, const std::string& endpoint,
                                     const SocketLimits& limits) {
  auto socket = SL_TRY(open_socket(context, ZMQ_DEALER, limits));
  // Only one connection: a second one would bring only a part of an answer.
  set_option(socket.get(), ZMQ_RECONNECT_IVL, -1);
  if (zmq_connect(socket.get(), endpoint.c_str()) != 0) return endpoint_error("replay");
  return socket;
}

bool has_message(void* socket) {
  int events = 0;
  std::size_t size = sizeof events;
  SL_CHECK(zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0);
  return (events & ZMQ_POLLIN) != 0;
}

bool send_replay_request(void* socket, std::uint64_t from) {
  const auto start = events::replay_start(from);
  return zmq_send(socket, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
         zmq_send(socket, start.data(), start.size(), ZMQ_DONTWAIT) >= 0;
}

// Reports must not be written to a monitor that no thread reads. So they stop before it closes.
EventsSocket::Sockets::~Sockets() {
  if (subscriber) zmq_socket_monitor(subscriber.get(), nullptr, 0);
}

Result<EventsSocket> EventsSocket::open(void* context, const std::string& endpoint, bool bind,
                                        const SocketLimits& limits) {
  auto sockets = std::make_unique<Sockets>();
  sockets->subscriber = SL_TRY(open_socket(context, ZMQ_SUB, limits));
  void* subscriber = sockets->subscriber.get();
  set_option(subscriber, ZMQ_HANDSHAKE_IVL, kHandshake_ms);
  set_option(subscriber, ZMQ_HEARTBEAT_IVL, static_cast<int>(limits.heartbeat.interval.count()));
  // Over TCP, look_after_links() judges the silence: see Heartbeat.
  const bool is_tcp = endpoint.starts_with("tcp:");
  set_option(subscriber, ZMQ_HEARTBEAT_TIMEOUT,
             is_tcp ? 0 : static_cast<int>(limits.heartbeat.timeout.count()));
  set_option(subscriber, ZMQ_HEARTBEAT_TTL, kHeartbeatLife_ms);
  SL_CHECK(zmq_setsockopt(subscriber, ZMQ_SUBSCRIBE, "", 0) == 0);
  // The monitor comes before the connection, to report all of its events.
  sockets->monitor = open_monitor(context, subscriber);
  if (!sockets->monitor)
    return internal_error("no ZMQ sockets left: raise the limit of open files");
  const int status =
      bind ? zmq_bind(subscriber, endpoint.c_str()) : zmq_connect(subscriber, endpoint.c_str());
  if (status != 0) return endpoint_error("events");
  return EventsSocket(std::move(sockets), limits);
}

std::optional<LinkEvent> EventsSocket::next_link_event() {
  Multipart message;
  while (message.receive(links())) {
    // First frame: 16 bits of event, 32 bits of value, in the machine's byte order.
    std::uint16_t event = 0;
    std::uint32_t descriptor = 0;
    const auto frame = message.frames()[0];
    SL_CHECK(frame.size() == sizeof event + sizeof descriptor);
    std::memcpy(&event, frame.data(), sizeof event);
    std::memcpy(&descriptor, frame.data() + sizeof event, sizeof descriptor);
    if (event == ZMQ_EVENT_ACCEPTED || event == ZMQ_EVENT_CONNECTED) {
      if (event == ZMQ_EVENT_ACCEPTED) opening_.insert(descriptor);
      const auto link = TcpLink::of(static_cast<int>(descriptor));
      if (link) links_.insert_or_assign(static_cast<int>(descriptor), *link);
      continue;
    }
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      opening_.clear();
      return LinkEvent::Up;
    }
    if (event == ZMQ_EVENT_CONNECT_RETRIED) return LinkEvent::Retrying;
    links_.erase(static_cast<int>(descriptor));
    if (links_.empty()) unread_.clear();
    return opening_.erase(descriptor) > 0 ? LinkEvent::Rejected : LinkEvent::Lost;
  }
  return std::nullopt;
}

bool EventsSocket::look_after_links(Duration since_last, std::uint64_t wire_bytes_taken,
                                    bool message_waits) {
  UnreadBytes::Arrived arrived;
  for (auto& [descriptor, link] : links_) {
    // A closed connection has no news. next_link_event() reports its end.
    const auto news = link.look();
    if (!news) continue;
    arrived.bytes += news->bytes_arrived;
    arrived.in_kernel += news->bytes_in_kernel;
    if (news->bytes_in_kernel == 0 && news->silence > limits_.heartbeat.timeout) link.shut();
  }
  return unread_.is_too_much(arrived, wire_bytes_taken, since_last, message_waits);
}

struct Multipart::Parts {
  std::array<zmq_msg_t, kFramesMax + 1> messages{};  // the last one is for dropped frames
};

Multipart::Multipart() : parts_(std::make_unique<Parts>()) {
  for (auto& part : parts_->messages) zmq_msg_init(&part);
}

Multipart::~Multipart() {
  for (auto& part : parts_->messages) zmq_msg_close(&part);
}

bool Multipart::receive(void* socket) {
  count_ = bytes_ = wire_bytes_ = 0;
  for (bool more = true; more;) {
    auto& part = parts_->messages[std::min(count_, kFramesMax)];
    if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0) return false;
    bytes_ += zmq_msg_size(&part);
    // ZMTP 3 has a header of 2 bytes for a short frame and 9 bytes for a long one.
    wire_bytes_ += zmq_msg_size(&part) + (zmq_msg_size(&part) > kShortFrameMax ? 9 : 2);
    if (count_ < kFramesMax) {
      views_[count_++] = {static_cast<const std::uint8_t*>(zmq_msg_data(&part)),
                          zmq_msg_size(&part)};
    }
    more = zmq_msg_more(&part) != 0;
  }
  return true;
}

}  // namespace sightline::subscriber
