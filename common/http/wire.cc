// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/wire.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/base/check.h"

namespace sightline::http {
namespace {

// What a connection sends or receives before the others of its thread have their turn: a fifth to
// half of a millisecond. Smaller turns mix the bodies of many connections, which then leave the
// processor's cache between turns. A quarter of this size takes 8 % more time for a body of 900 KB.
constexpr std::size_t kTurnBytesMax = 1024 * 1024;
// Receiving into a string first clears its new bytes, so the steps must stay in the cache. The
// first steps are small: a body that arrives slowly must not take more memory than it has bytes.
constexpr std::size_t kReceiveStepBytesMin = 16 * 1024;
constexpr std::size_t kReceiveStepBytesMax = 256 * 1024;
// The pieces that one sendmsg() takes.
constexpr std::size_t kPiecesMax = 16;
// How often a wire with a full buffer checks for the peer's end.
constexpr std::chrono::milliseconds kLookInterval{250};
// With less room at the end, the received bytes move to the front.
constexpr std::size_t kRoomBytesMin = 1024;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Errors of socket(), connect() and accept() that do not depend on the peer.
bool is_local(const asio::error_code& code) {
  switch (code.value()) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EADDRNOTAVAIL:
      return code.category() == asio::error::get_system_category();
    default:
      return false;
  }
}

}  // namespace

// The unsent rest of a list of pieces.
struct Wire::Unsent {
  explicit Unsent(std::span<const std::string_view> all) : pieces(all) { drop_front(0); }

  void drop_front(std::size_t bytes) {
    sent_of_first += bytes;
    while (!pieces.empty() && sent_of_first >= pieces.front().size()) {
      sent_of_first -= pieces.front().size();
      pieces = pieces.subspan(1);
    }
  }

  std::span<const std::string_view> pieces;
  std::size_t sent_of_first = 0;
};

void Wire::pass_deadline() {
  timed_out_ = true;
  asio::error_code ignored;
  // Cancels the wait. Its completion sees timed_out_.
  socket_.cancel(ignored);
}

Task<Io> Wire::connect(const asio::ip::tcp::endpoint& to, int descriptor_max) {
  asio::error_code code;
  socket_.open(to.protocol(), code);
  if (code) co_return is_local(code) ? Io::Local : Io::Closed;
  // The socket closes with its owner.
  if (socket_.native_handle() >= descriptor_max) co_return Io::Local;
  auto token = asio::redirect_error(use_task, code);
  co_await socket_.async_connect(to, token);
  if (std::exchange(timed_out_, false)) co_return Io::TimedOut;
  if (code == asio::error::connection_refused) co_return Io::Refused;
  if (code) co_return is_local(code) ? Io::Local : Io::Closed;
  socket_.set_option(asio::ip::tcp::no_delay(true), code);
  co_return code ? Io::Closed : Io::Done;
}

void Wire::make_room() {
  // An empty buffer starts again without a copy.
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (begin_ > 0 && capacity_ - end_ < kRoomBytesMin) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
}

void Wire::replace_buffer(std::size_t bytes) {
  SL_CHECK(!listening_);
  auto other = std::make_unique_for_overwrite<char[]>(bytes);
  std::memcpy(other.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  buffer_ = std::move(other);
  capacity_ = bytes;
}

void Wire::reserve(std::size_t bytes) {
  if (bytes > capacity_) replace_buffer(bytes);
}

void Wire::shrink() {
  if (capacity_ > capacity_min_ && end_ - begin_ <= capacity_min_) replace_buffer(capacity_min_);
}

void Wire::listen() {
  if (listening_ || ended_) return;
  make_room();
  // A full buffer stops receiving, so only a poll shows the peer's end.
  if (end_ == capacity_) {
    if (!look_) look_.emplace(deadlines_, [this] { look_for_end(); });
    look_->set(kLookInterval);
    return;
  }
  listening_ = true;
  socket_.async_read_some(
      asio::buffer(buffer_.get() + end_, capacity_ - end_),
      // The operation owns the wire, so the buffer outlives it.
      [self = shared_from_this()](const asio::error_code& code, std::size_t bytes) {
        self->on_received(code, bytes);
      });
}

void Wire::look_for_end() {
  if (!on_event_ || listening_ || ended_) return;
  pollfd state{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&state, 1, 0) <= 0) return look_->set(kLookInterval);
  ended_ = true;
  const auto on_event = on_event_;
  on_event();
}

void Wire::on_received(const asio::error_code& code, std::size_t bytes) {
  listening_ = false;
  end_ += bytes;
  // A passed deadline cancels the receiving, but the connection stays usable.
  const bool only_cancelled = code == asio::error::operation_aborted && socket_.is_open();
  if (code && !only_cancelled) ended_ = true;
  if (waiting_) {
    arrival_.open();
  } else if (on_event_) {
    // A copy, because the callback may destroy its owner.
    const auto on_event = on_event_;
    on_event();
  }
}

Task<Io> Wire::more() {
  if (!listening_ && !ended_) {
    make_room();
    if (end_ == capacity_) {
      if (capacity_ >= capacity_max_) co_return Io::Full;
      reserve(std::min(capacity_ * 2, capacity_max_));
    }
  }
  listen();
  const auto before = end_;
  if (listening_) {
    arrival_.close();
    waiting_ = true;
    co_await arrival_.wait();
    waiting_ = false;
  }
  // Bytes count before a deadline that passed at the same moment.
  if (end_ > before) co_return Io::Done;
  if (std::exchange(timed_out_, false)) co_return Io::TimedOut;
  co_return Io::Closed;
}

Task<Io> Wire::wait_for(asio::socket_base::wait_type direction, Duration stall) {
  deadline_.set(stall);
  asio::error_code code;
  auto token = asio::redirect_error(use_task, code);
  co_await socket_.async_wait(direction, token);
  deadline_.clear();
  if (std::exchange(timed_out_, false)) co_return Io::TimedOut;
  co_return code ? Io::Closed : Io::Done;
}

// Uses the thread's queue: to wait for the socket would cost a system call and a poll.
Task<void> Wire::give_way() {
  turn_bytes_ = 0;
  deadline_.clear();
  co_await asio::post(socket_.get_executor(), use_task);
}

Task<Io> Wire::receive_some(std::string& out, std::size_t bytes_max, Duration stall) {
  SL_CHECK(!listening_ && begin_ == end_);
  for (;;) {
    if (ended_) co_return Io::Closed;
    if (turn_bytes_ >= kTurnBytesMax) {
      co_await give_way();
      continue;
    }
    const auto old_size = out.size();
    const auto step =
        std::min(bytes_max, std::clamp(old_size, kReceiveStepBytesMin, kReceiveStepBytesMax));
    out.resize(old_size + step);
    const auto got = ::recv(socket_.native_handle(), out.data() + old_size, step, MSG_DONTWAIT);
    out.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    turn_bytes_ += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    if (got > 0) co_return Io::Done;
    if (got == 0 || !would_block(errno)) {
      ended_ = true;
      co_return Io::Closed;
    }
    // The wait let others run, so the turn begins again.
    turn_bytes_ = 0;
    const auto waited = co_await wait_for(asio::socket_base::wait_read, stall);
    if (waited != Io::Done) co_return waited;
  }
}

std::optional<std::size_t> Wire::send_now(Unsent& unsent) {
  std::array<iovec, kPiecesMax> vectors;
  std::size_t count = 0;
  std::size_t skipped = unsent.sent_of_first;
  // Above this the peer could keep this thread busy alone.
  std::size_t left = kTurnBytesMax;
  for (const auto piece : unsent.pieces.first(std::min(unsent.pieces.size(), kPiecesMax))) {
    const std::size_t bytes = std::min(piece.size() - skipped, left);
    vectors[count++] = {const_cast<char*>(piece.data()) + skipped, bytes};
    left -= bytes;
    skipped = 0;
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  const auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return would_block(errno) ? std::optional<std::size_t>(0) : std::nullopt;
  unsent.drop_front(static_cast<std::size_t>(sent));
  return static_cast<std::size_t>(sent);
}

Task<Io> Wire::send(std::span<const std::string_view> pieces, Pace& pace) {
  Unsent unsent(pieces);
  while (!unsent.pieces.empty()) {
    if (!socket_.is_open()) co_return Io::Closed;
    const auto pieces_before = unsent.pieces.size();
    const auto sent = send_now(unsent);
    if (!sent) co_return Io::Closed;
    pace.add(Duration::zero(), *sent);
    // The socket took all that this call offered, so more may fit.
    const bool took_all =
        pieces_before - unsent.pieces.size() >= std::min(pieces_before, kPiecesMax);
    if (took_all) continue;
    // The turn is used up, not the socket.
    if (*sent == kTurnBytesMax) {
      co_await give_way();
      continue;
    }
    const Instant begin = system_clock().now();
    const auto waited = co_await wait_for(asio::socket_base::wait_write, pace.patience());
    pace.add(system_clock().now() - begin, 0);
    if (waited != Io::Done) co_return waited;
  }
  co_return Io::Done;
}

bool Wire::is_quiet() {
  if (ended_ || timed_out_ || begin_ != end_) return false;
  char byte = 0;
  const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && would_block(errno);
}

void Wire::end_sending() {
  asio::error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
}

void Wire::close() {
  ended_ = true;
  deadline_.clear();
  asio::error_code ignored;
  socket_.close(ignored);
}

void Wire::reset() {
  asio::error_code ignored;
  // Linger with a time of 0 makes close() send a reset.
  if (socket_.is_open()) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

}  // namespace sightline::http
