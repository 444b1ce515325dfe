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
  Done,
  Closed,    // end of stream, reset, or closed on our side
  TimedOut,  // the deadline passed; the connection is still open
  Full,      // the receive buffer holds its maximum
  Refused,   // nobody listens there; connect() alone tells it
  Local,     // no descriptor, memory or port of ours for it; connect() alone tells it
};

// A TCP connection with a receive buffer. Receiving may go on in the background, which costs
// nothing when the bytes are wanted later, and notices a peer that leaves. Sending tries the socket
// first and waits only when it is full.
// Thread safety: none; belongs to one I/O thread. At most one coroutine waits on it at a time.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  using Socket = asio::basic_stream_socket<asio::ip::tcp, Executor>;
  struct Buffer {
    std::size_t bytes = 4096;       // at first
    std::size_t bytes_max = 65536;  // more() grows it up to this
  };

  // From an accepted socket, or from an io_context for connect().
  template <class Source>
  Wire(Source&& source, Deadlines& deadlines, const Buffer& buffer)
      : socket_(std::forward<Source>(source)),
        deadline_(deadlines, [this] { pass_deadline(); }),
        deadlines_(deadlines),
        buffer_(std::make_unique_for_overwrite<char[]>(buffer.bytes)),
        capacity_(buffer.bytes),
        capacity_min_(buffer.bytes),
        capacity_max_(buffer.bytes_max) {}

  // Connects within the deadline and sets TCP_NODELAY. Descriptors from descriptor_max on are for
  // others.
  Task<Io> connect(const asio::ip::tcp::endpoint& to, int descriptor_max);

  // Bytes received and not yet consumed. They move only in more(), listen() and reserve().
  [[nodiscard]] std::string_view received() const {
    return {buffer_.get() + begin_, end_ - begin_};
  }
  [[nodiscard]] char* received_bytes() { return buffer_.get() + begin_; }
  void consume(std::size_t bytes) { begin_ += bytes; }

  // Receives in the background until something arrives; does nothing if that is under way, the
  // buffer is full or the peer has ended.
  void listen();
  // True while that is under way; the free part of the buffer belongs to it.
  [[nodiscard]] bool listening() const { return listening_; }
  // Waits until received() has grown.
  Task<Io> more();
  // Appends at least one and at most so many bytes to out, straight from the socket; waits at most
  // `stall` for them. Touches little more of out's memory than it fills. Only while not listening
  // and with nothing in received().
  Task<Io> receive_some(std::string& out, std::size_t bytes_max, Duration stall);
  // Returns after everything else that is ready on this thread has run. Clears the deadline.
  Task<void> give_way();
  // Makes the buffer at least so large; only while not listening.
  void reserve(std::size_t bytes);
  // Bytes of the buffer.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  // Gives back what the buffer has grown beyond its first size, if what was received fits into
  // that; only while not listening.
  void shrink();

  // Sends the pieces one after the other, waiting for the peer as long as its pace allows. The
  // deadline is cleared if it had to wait.
  Task<Io> send(std::span<const std::string_view> pieces, Pace& pace);

  // Bounds the waits that follow, until cleared: they end with TimedOut.
  void set_deadline(Duration from_now) {
    timed_out_ = false;
    deadline_.set(from_now);
  }
  void clear_deadline() { deadline_.clear(); }

  // Called when the background receiving gets bytes, the end, or the deadline passes, and no
  // coroutine waits in more(). It may destroy the connection's owner. While the buffer is full, the
  // end is looked for four times a second; it shows once the kernel has taken all that came before.
  void watch(std::function<void()> on_event) { on_event_ = std::move(on_event); }
  // True while the connection is open, the peer has sent nothing that is not consumed, and the
  // deadline has not passed. Asks the kernel, which may know of an end not yet noticed here.
  [[nodiscard]] bool is_quiet();
  // True after end of stream, reset or close().
  [[nodiscard]] bool ended() const { return ended_; }

  // Tells the peer that nothing more will come; receiving goes on.
  void end_sending();
  void close();
  // Closes with a reset, so that the peer can not take what it got for complete.
  void reset();

 private:
  struct Unsent;
  // Sends what the socket takes at once and says how much; nothing if the connection is broken.
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
  std::optional<Deadline> look_;  // for the peer's end, while the buffer is full
  Gate arrival_;
  std::function<void()> on_event_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_;
  std::size_t capacity_min_;
  std::size_t capacity_max_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t turn_bytes_ = 0;  // received by receive_some() since it gave way
  bool listening_ = false;
  bool waiting_ = false;
  bool ended_ = false;
  bool timed_out_ = false;
};

}  // namespace sightline::http
