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

// libzmq's objects as this module uses them. A socket belongs to the thread that opened it.
namespace sightline::subscriber {

struct CloseContext {
  void operator()(void* context) const;
};
struct CloseSocket {
  void operator()(void* socket) const;
};
using ZmqContext = std::unique_ptr<void, CloseContext>;  // outlives its sockets
using ZmqSocket = std::unique_ptr<void, CloseSocket>;

// A context for as many sockets as libzmq allows (65,535: about 16,000 ranks). Nothing when the
// process has no file descriptors left.
ZmqContext open_context();

// How a connection is found dead of which TCP would say nothing for hours: the peer's host is
// gone, it is frozen, or the network lets nothing through. libzmq answers on threads of its own,
// however busy the rank is.
// Over TCP look_after_links() judges the silence, not libzmq: while nobody reads a socket whose
// queue is full it reads no answer either, and would close a healthy connection for our delay.
struct Heartbeat {
  std::chrono::milliseconds interval{2000};  // between questions for a sign of life
  std::chrono::milliseconds timeout{4000};   // longest wait for any
};

struct SocketLimits {
  // ZMQ_RCVHWM: a full queue holds the peer back. libzmq counts whole messages only.
  int messages_max = 0;
  std::size_t frame_bytes_max = 0;  // a larger frame closes the connection it came on
  Heartbeat heartbeat = {};         // of an events socket
};

// Sockets accept IPv4 and IPv6. Hosts to connect to are given by address: libzmq would look a name
// up on the thread that serves all sockets. Errors: InvalidArgument, which says which endpoint
// libzmq refuses or cannot bind and why; Unavailable, when its address is in use, be it by a socket
// just closed; Internal, when the process has no sockets left.
Result<ZmqSocket> open_replay_socket(void* context, const std::string& endpoint,
                                     const SocketLimits& limits);

// Whether a message, all of it, waits to be received. Takes the news that ZmqPoller waits for: what
// waits is to be read, or looked at again.
bool has_message(void* socket);

// Asks a replay socket for all messages from this one on; false: it cannot be sent.
bool send_replay_request(void* socket, std::uint64_t from);

// What happened to the connections of an events socket.
enum class LinkEvent : std::uint8_t {
  Up,        // connected, and both sides speak ZMTP
  Lost,      // closed by the peer, or by us for what came on it
  Rejected,  // the same of one that was never up, on a bound socket: a probe of the port
  Retrying,  // libzmq connects again by itself
};

// A SUB socket of all topics, with news of its connections.
class EventsSocket {
 public:
  static Result<EventsSocket> open(void* context, const std::string& endpoint, bool bind,
                                   const SocketLimits& limits);
  [[nodiscard]] void* messages() const { return sockets_->subscriber.get(); }
  // Readable when next_link_event() has something.
  [[nodiscard]] void* links() const { return sockets_->monitor.get(); }
  // A connection closed that came before one that came up and was not up itself may be told as
  // Lost: libzmq does not say which of them came up.
  std::optional<LinkEvent> next_link_event();
  // To be called every Heartbeat::interval while it is connected. Closes connections that have
  // been silent for too long though all they brought is read, which next_link_event() then tells.
  // True: libzmq holds more of a message that does not end than any rank sends; close the socket.
  // message_waits: as has_message(messages()).
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
  std::set<std::uint32_t> opening_;  // descriptors of connections taken that are not up
  std::map<int, TcpLink> links_;     // by descriptor
  UnreadBytes unread_;
  SocketLimits limits_;
};

// The frames of one received message. Not copyable: it owns libzmq's buffers.
class Multipart {
 public:
  // More frames than this are read and dropped; ranks send 3 or 4.
  static constexpr std::size_t kFramesMax = 8;

  Multipart();
  ~Multipart();
  Multipart(const Multipart&) = delete;
  Multipart& operator=(const Multipart&) = delete;

  // False when no message is waiting. Replaces the frames received before.
  bool receive(void* socket);
  [[nodiscard]] std::span<const ByteView> frames() const { return {views_.data(), count_}; }
  // Of all frames received, those dropped included.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // The same as it came over the network, with ZMTP's heads of the frames.
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
