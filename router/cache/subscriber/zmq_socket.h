// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/cache/subscriber/tcp_link.h"

// The objects of libzmq that this module uses. A socket belongs to the thread that opened it.
namespace sightline::subscriber {

// Closes a context. It waits until all sockets of the context are closed.
struct CloseContext {
  void operator()(void* context) const;
};
struct CloseSocket {
  void operator()(void* socket) const;
};
using ZmqContext = std::unique_ptr<void, CloseContext>;  // outlives its sockets
using ZmqSocket = std::unique_ptr<void, CloseSocket>;

// Returns a context for as many sockets as libzmq allows (65,535: about 16,000 ranks). Null if the
// process has no file descriptors left.
ZmqContext open_context();

// How a dead connection is detected that TCP would not report for hours. The peer's host may be
// gone, or the peer frozen, or the network may drop everything. The peer's libzmq answers on its
// own threads, however busy the rank is.
//
// Over TCP, look_after_links() judges the silence, not libzmq. While a socket's queue is full,
// libzmq reads no answer either. It would close a healthy connection because of the router's own
// delay.
struct Heartbeat {
  std::chrono::milliseconds interval{2000};  // between requests for a sign of life.
  std::chrono::milliseconds timeout{4000};   // the longest wait for any data.
};

// Limits of one socket.
struct SocketLimits {
  // ZMQ_RCVHWM: a full queue holds the peer back. libzmq counts only whole messages.
  int messages_max = 0;
  std::size_t frame_bytes_max = 0;  // a larger frame closes its connection.
  Heartbeat heartbeat = {};         // of an events socket.
};

// Opens a DEALER to a replay socket, over IPv4 or IPv6. The endpoint has a numeric address: libzmq
// would look a name up on the thread that serves all sockets. Errors: InvalidArgument, which says
// which endpoint libzmq refuses or cannot bind and why. Unavailable, if its address is in use, even
// by a socket closed a moment ago. Internal, if the process has no sockets left.
Result<ZmqSocket> open_replay_socket(void* context, const std::string& endpoint,
                                     const SocketLimits& limits);

// Returns whether a whole message waits. The call consumes the signal that ZmqPoller waits for. So
// read the waiting messages, or call look_again().
bool has_message(void* socket);

// Requests all messages from this number on. Returns false if the request cannot be sent.
bool send_replay_request(void* socket, std::uint64_t from);

// A change of the connections of an events socket.
enum class LinkEvent : std::uint8_t {
  Up,        // connected, and both sides speak ZMTP.
  Lost,      // closed by the peer, or by the router because of data on it.
  Rejected,  // closed before it was up, on a bound socket: a probe of the port.
  Retrying,  // libzmq connects again on its own.
};

// A SUB socket for all topics, with reports about its connections.
class EventsSocket {
 public:
  // Has the errors of open_replay_socket(). With `bind` it binds the endpoint, otherwise it
  // connects.
  static Result<EventsSocket> open(void* context, const std::string& endpoint, bool bind,
                                   const SocketLimits& limits);
  // The socket that receives messages.
  [[nodiscard]] void* messages() const { return sockets_->subscriber.get(); }
  // Readable if next_link_event() has something to return.
  [[nodiscard]] void* links() const { return sockets_->monitor.get(); }
  // Returns the next change, or empty. A connection that closes before it is up may be reported as
  // Lost, if another connection came up in between. libzmq does not say which one came up.
  std::optional<LinkEvent> next_link_event();
  // Call this every Heartbeat::interval while the socket is connected. It closes a connection that
  // was silent for too long, if all its data has been read. next_link_event() then reports that.
  // Returns true if libzmq holds more of a message without end than any rank sends. The caller then
  // closes the socket. message_waits: the result of has_message(messages()).
  bool look_after_links(Duration since_last, std::uint64_t wire_bytes_taken, bool message_waits);

 private:
  struct Sockets {
    ZmqSocket monitor;
    ZmqSocket subscriber;
    ~Sockets();
  };
  EventsSocket(std::unique_ptr<Sockets> sockets, const SocketLimits& limits)
      : sockets_(std::move(sockets)), unread_(limits.frame_bytes_max), limits_(limits) {}
  std::unique_ptr<Sockets> sockets_;
  // Descriptors of accepted connections that are not up.
  std::set<std::uint32_t> opening_;
  // The TCP connections by descriptor.
  std::map<int, TcpLink> links_;
  // What libzmq holds of all connections.
  UnreadBytes unread_;
  SocketLimits limits_;
};

// The frames of one received message. It cannot be copied, because it owns libzmq's buffers.
class Multipart {
 public:
  // Frames beyond this number are read and dropped. Ranks send 3 or 4.
  static constexpr std::size_t kFramesMax = 8;

  Multipart();
  ~Multipart();
  Multipart(const Multipart&) = delete;
  Multipart& operator=(const Multipart&) = delete;

  // Receives a message, which replaces the frames of the one before. Returns false if no message
  // waits.
  bool receive(void* socket);
  // Returns the frames. The views are valid until the next receive().
  [[nodiscard]] std::span<const ByteView> frames() const { return {views_.data(), count_}; }
  // Returns the size of all frames, with the dropped ones.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Returns the size as sent over the network, with ZMTP's frame headers.
  [[nodiscard]] std::size_t wire_bytes() const { return wire_bytes_; }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::array<ByteView, kFramesMax> views_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  std::size_t wire_bytes_ = 0;
};

}  // namespace sightline::subscriber
