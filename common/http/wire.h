// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <asio/basic_stream_socket.hpp>
#include <asio/ip/tcp.hpp>

#include "common/base/clock.h"
#include "common/http/pace.h"
#include "common/runtime/deadlines.h"
#include "common/runtime/task.h"

namespace sightline::http {

// How a wait for the peer ended.
enum class Io {
  // It succeeded.
  Done,
  // The stream ended, was reset, or was closed on our side.
  Closed,
  // The deadline passed. The connection is still open.
  TimedOut,
  // The receive buffer has its maximum size and is full.
  Full,
  // No server listens there. Only connect() returns it.
  Refused,
  // This process lacks a descriptor, memory or a port. Only connect() returns it.
  Local,
};

// A TCP connection with a receive buffer. It can receive in the background: this costs nothing if
// the bytes are needed later anyway, and it notices a peer that leaves. Sending tries the socket
// first and waits only when the socket is full.
// Thread safety: one I/O thread, which owns it. At most one coroutine waits on it at a time.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
  struct Buffer {
    // The first size.
    std::size_t bytes = 4096;
    // more() grows the buffer up to this.
    std::size_t bytes_max = 65536;
  };

  // `source` is an accepted socket, or an io_context for connect().
  template <class Source>
  Wire(Source&& source, Deadlines& deadlines, const Buffer& buffer)
      : socket_(std::forward<Source>(source)),
        deadline_(deadlines, [this] { pass_deadline(); }),
        deadlines_(deadlines),
        buffer_(std::make_unique_for_overwrite<char[]>(buffer.bytes)),
        capacity_(buffer.bytes),
        capacity_min_(buffer.bytes),
        capacity_max_(buffer.bytes_max) {}

  // Connects within the deadline and sets TCP_NODELAY. A descriptor of descriptor_max or more
  // counts as missing, because others of the process need it.
  Task<Io> connect(const asio::ip::tcp::endpoint& to, int descriptor_max);

  // The bytes received and not yet consumed. They move only in more(), listen() and reserve().
  [[nodiscard]] std::string_view received() const {
    return {buffer_.get() + begin_, end_ - begin_};
  }
  [[nodiscard]] char* received_bytes() { return buffer_.get() + begin_; }
  // Removes bytes from the front of received().
  void consume(std::size_t bytes) { begin_ += bytes; }

  // Receives in the background until bytes arrive. No effect if it already receives, if the buffer
  // is full, or if the peer has ended.
  void listen();
  // True while it receives in the background. The free part of the buffer is then in use.
  [[nodiscard]] bool listening() const { return listening_; }
  // Waits until received() has grown.
  Task<Io> more();
  // Appends at least one and at most bytes_max bytes to `out`, straight from the socket. Waits for
  // them at most `stall`. Touches little more of out's memory than it fills, so unused capacity
  // costs no memory. Only while not listening and with an empty received().
  Task<Io> receive_some(std::string& out, std::size_t bytes_max, Duration stall);
  // Returns after all other ready work of this thread has run. Clears the deadline.
  Task<void> give_way();
  // Grows the buffer to at least this size. Only while not listening.
  void reserve(std::size_t bytes);
  // The size of the buffer in bytes.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // Frees the memory beyond the buffer's first size, if the received bytes fit into that. Only
  // while not listening.
  void shrink();

  // Sends the pieces one after the other. Waits for the peer as long as `pace` allows. Clears the
  // deadline if it waited.
  Task<Io> send(std::span<const std::string_view> pieces, Pace& pace);

  // Limits the waits that follow, until it is cleared: they end with TimedOut.
  void set_deadline(Duration from_now) {
    timed_out_ = false;
    deadline_.set(from_now);
  }
  void clear_deadline() { deadline_.clear(); }

  // Sets a callback for when no coroutine waits in more(). It runs when the background receiving
  // gets bytes or the end, or when the deadline passes. It may destroy the connection's owner.
  // While the buffer is full, the wire checks for the end four times a second. It sees the end once
  // the kernel has received all bytes before it.
  void watch(std::function<void()> on_event) { on_event_ = std::move(on_event); }
  // True while the connection is open, all bytes of the peer are consumed, and the
  // deadline has not passed. Asks the kernel, which may have an end unnoticed here.
  [[nodiscard]] bool is_quiet();
  // True after the end of the stream, a reset or close().
  [[nodiscard]] bool ended() const { return ended_; }

  // Ends our direction of the stream. Receiving continues.
  void end_sending();
  // Closes the socket. Pending waits end with Closed.
  void close();
  // Closes with a reset, which shows the peer that its bytes are incomplete.
  void reset();

 private:
  struct Unsent;
  // Sends what the socket takes without waiting. Returns the number of bytes, or nothing if the
  // connection is broken.
  std::optional<std::size_t> send_now(Unsent& unsent);
  void replace_buffer(std::size_t bytes);
  void on_received(const asio::error_code& code, std::size_t bytes);
  void make_room();
  void pass_deadline();
  void look_for_end();
  Task<Io> wait_for(asio::socket_base::wait_type direction, Duration stall);

  Socket socket_;
  Deadline deadline_;
  Deadlines& deadlines_;
  // Checks for the peer's end while the buffer is full.
  std::optional<Deadline> look_;
  Gate arrival_;
  std::function<void()> on_event_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_;
  std::size_t capacity_min_;
  std::size_t capacity_max_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  // Received by receive_some() since the last give_way().
  std::size_t turn_bytes_ = 0;
  bool listening_ = false;
  bool waiting_ = false;
  bool ended_ = false;
  bool timed_out_ = false;
};

}  // namespace sightline::http
