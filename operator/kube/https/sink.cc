// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/https/sink.h"

#include <exception>
#include <stdexcept>
#include <utility>

namespace sightline::https {
namespace {

using Buffer = concurrency::streams::details::streambuf_state_manager<std::uint8_t>;

// A buffer of the library that only supports writing in order.
class Sink : public Buffer {
 public:
  Sink(std::shared_ptr<Body> body, bool is_read_meanwhile)
      : Buffer(std::ios_base::out), body_(std::move(body)), is_waiting_(is_read_meanwhile) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode /*direction*/) const override { return 0; }
  void set_buffer_size(std::size_t /*size*/, std::ios_base::openmode /*direction*/) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode /*direction*/) const override { return nowhere(); }
  pos_type seekpos(pos_type /*at*/, std::ios_base::openmode /*direction*/) override {
    return nowhere();
  }
  pos_type seekoff(off_type /*by*/, std::ios_base::seekdir /*from*/,
                   std::ios_base::openmode /*mode*/) override {
    return nowhere();
  }
  bool acquire(std::uint8_t*& bytes, std::size_t& count) override {
    bytes = nullptr;
    count = 0;
    return false;
  }
  void release(std::uint8_t* /*bytes*/, std::size_t /*count*/) override {}

 protected:
  pplx::task<int_type> _putc(std::uint8_t byte) override {
    return _putn(&byte, 1).then([byte](std::size_t) { return static_cast<int_type>(byte); });
  }
  pplx::task<std::size_t> _putn(const std::uint8_t* bytes, std::size_t count) override {
    const std::string_view text(reinterpret_cast<const char*>(bytes), count);
    const pplx::task_completion_event<std::size_t> room;
    const auto state = body_->put(text, [room, count] { room.set(count); });
    if (state == Body::Room::More) return pplx::task_from_result(count);
    if (is_waiting_) return pplx::create_task(room);
    return pplx::task_from_exception<std::size_t>(
        std::make_exception_ptr(std::length_error("the answer is too long")));
  }
  pplx::task<int_type> _bumpc() override { return nothing(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return nothing(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return nothing(); }
  pplx::task<int_type> _ungetc() override { return nothing(); }
  pplx::task<std::size_t> _getn(std::uint8_t* /*bytes*/, std::size_t /*count*/) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  std::size_t _scopy(std::uint8_t* /*bytes*/, std::size_t /*count*/) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t /*count*/) override { return nullptr; }
  void _commit(std::size_t /*count*/) override {}

 private:
  static pos_type nowhere() { return static_cast<pos_type>(traits::eof()); }
  static pplx::task<int_type> nothing() { return pplx::task_from_result<int_type>(traits::eof()); }

  const std::shared_ptr<Body> body_;
  const bool is_waiting_;
};

}  // namespace

concurrency::streams::ostream sink_into(std::shared_ptr<Body> body, bool is_read_meanwhile) {
  return concurrency::streams::streambuf<std::uint8_t>(
             std::make_shared<Sink>(std::move(body), is_read_meanwhile))
      .create_ostream();
}

}  // namespace sightline::https
