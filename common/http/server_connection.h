// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/http/codec.h"
#include "common/http/idle_connections.h"
#include "common/http/pace.h"
#include "common/http/server.h"
#include "common/http/wire.h"

namespace sightline::http {

// How long a client may read why it was refused while the server drains.
inline constexpr std::chrono::milliseconds kDrainLingerTime{500};

// The state that the connections of one server share.
struct ServerContext {
  ServerContext(ServerOptions server_options, Responder responder, std::size_t io_threads)
      : options(std::move(server_options)), handler(std::move(responder)), idle(io_threads) {}

  // Reserves one more connection. Returns false at connections_max, or if there is no memory for
  // it.
  [[nodiscard]] bool take_place() {
    const bool is_free = places.fetch_add(1) < options.limits.connections_max;
    ByteBudget* const memory = options.connection_memory;
    if (is_free && (memory == nullptr || memory->take(kConnectionBytes, Claim::Small))) return true;
    places.fetch_sub(1);
    return false;
  }
  void give_place() {
    if (options.connection_memory != nullptr) options.connection_memory->give(kConnectionBytes);
    places.fetch_sub(1);
  }
  // Why take_place() returned false.
  [[nodiscard]] Error no_place() const;

  const ServerOptions options;
  const Responder handler;
  std::vector<IdleConnections> idle;        // one for each I/O thread
  std::atomic<std::size_t> places{0};       // the connections that have a place
  std::atomic<std::size_t> turned_away{0};  // refused connections that still read why
  std::atomic<std::size_t> acceptors{0};    // the threads that may still admit a connection
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> active_requests{0};
  // Of the bodies of requests, in memory.
  ByteBudget body_bytes{options.limits.total_body_bytes_max,
                        {.parent = options.memory, .limit = "total-body-bytes-max"}};
  std::atomic<bool> draining{false};
  std::atomic<bool> cut_off{false};  // some request was cut off
  Mutex mutex;       // held to wake the waiter when acceptors or connections reach 0
  CondVar all_gone;  // notified when acceptors == 0 && connections == 0
};

// The answer to a request that the server refuses: `options.refusal` makes it, or the default.
Response refusal_response(const ServerOptions& options, int status, const Error& error);

// One client's connection: reads requests, runs the handler and writes answers, in order.
// Thread safety: one I/O thread, which owns it. The context outlives it.
class ServerConnection {
 public:
  // `idle` is the list of its I/O thread and outlives it.
  ServerConnection(Wire::Socket socket, Deadlines& deadlines, ServerContext& context,
                   IdleConnections& idle);

  // Serves requests until the connection ends. It has a place of the context and gives it back.
  Task<void> run();
  // Answers 503 to any request, and lets the client read that.
  Task<void> turn_away(Error error);
  // Closes the connection and frees its place for another, if its client has sent nothing since the
  // last request.
  bool give_way();

  // Ends the connection after its present request, or after one that arrives very soon.
  void drain();
  // Makes a running handler end its answer, and then ends the connection.
  void cut_off();
  // Ends the connection now, and notifies a running handler.
  void force_close();

  // These have the contracts of ResponseWriter.
  Task<Result<Done>> send(Response response);
  Task<Result<Done>> begin(int status, Headers headers);
  Task<Result<Done>> write(std::string_view text);
  Task<Result<Done>> finish();
  void abort();
  [[nodiscard]] bool started() const { return phase_ > Phase::Handling; }
  [[nodiscard]] bool disconnected() const { return disconnected_; }
  [[nodiscard]] bool is_cut_off() const { return cut_off_; }
  void on_disconnect(std::function<void()> callback);

 private:
  enum class Phase { Idle, Reading, Handling, Streaming, Answered, Lingering };

  // Reads and answers one request. Returns false if the connection ends with it.
  Task<bool> serve_request();
  // Returns false if the connection ends. If the header alone decides, `refusal` is the answer and
  // the body is not read.
  Task<bool> read_request(std::optional<Response>& refusal);
  Task<bool> read_head();
  // The answer that the header alone decides. Also sets the limit of the body.
  std::optional<Response> look_at_head();
  Task<Io> wait_idle();
  Task<bool> read_body();
  Task<bool> read_known_body(std::size_t bytes);
  Task<bool> read_chunked_body();
  // Waits for more of the body, at the least rate that `pace` allows.
  Task<Io> more_body(Pace& pace);
  // Reserves the body's memory, in a turn of its own.
  Task<void> make_room(std::size_t bytes);
  [[nodiscard]] Pace body_pace() const;
  Task<bool> expect_continue();
  Task<void> answer();
  // Answers a request that its header refuses. Returns as serve_request() does.
  Task<bool> decline(Response response);
  // Answers and closes the connection. These return false.
  Task<bool> refuse_with(Response response);
  Task<bool> refuse(int status, Error error);
  Task<bool> refuse_undecodable();
  Task<bool> refuse_slow(Io how, std::string_view what);
  Task<bool> refuse_large_body();
  // There is no room for a body of so many bytes.
  Task<bool> refuse_crowded(std::size_t bytes);
  // There is no room for what the buffer has grown by.
  Task<bool> refuse_unbuffered();
  // Counts the memory of buffer and header beyond kConnectionBytes. Returns false without room.
  [[nodiscard]] bool hold_buffers();
  // Counts the received part of the body. Returns false if all connections together hold too much.
  // Then the body is not counted any more, so it makes room for others before its answer.
  [[nodiscard]] bool hold_body();
  // Also frees the body's memory.
  void drop_body();
  void release_body();
  Task<void> linger(Duration longest);
  void leave_place();
  void receive_ahead();
  void notice_disconnect();
  void tell_handler();
  // How long to wait for the client's bytes: `usual`, or the rest of a drain's time.
  [[nodiscard]] Duration patience(Duration usual) const;
  void begin_request();
  void begin_reading();
  [[nodiscard]] bool waits_for_client() const {
    return phase_ == Phase::Idle || phase_ == Phase::Reading || phase_ == Phase::Lingering;
  }
  [[nodiscard]] bool keeps_alive() const;
  [[nodiscard]] ResponseHead response_head(int status, const Headers& headers);
  Task<Result<Done>> send_pieces(std::span<const std::string_view> pieces);

  ServerContext& context_;
  IdleConnections::Entry idle_;
  std::shared_ptr<Wire> wire_;
  RequestDecoder decoder_;
  std::string peer_;
  Request request_;
  std::string head_;  // of the answer, or of a chunk
  std::function<void()> on_disconnect_;
  std::size_t body_bytes_max_ = 0;   // of this request
  std::size_t held_body_bytes_ = 0;  // of this request, counted in the context
  HeldBytes buffers_;                // see hold_buffers()
  std::size_t head_bytes_ = 0;       // of this request
  std::size_t announced_bytes_ = 0;  // the body's size, from the header
  std::optional<Pace> write_pace_;   // of the answer
  Phase phase_ = Phase::Idle;
  Framing::Kind framing_ = Framing::Kind::None;
  bool has_place_ = false;
  bool http11_ = true;
  bool head_only_ = false;
  bool client_keeps_alive_ = false;
  bool disconnected_ = false;
  bool broken_ = false;  // nothing more can be sent
  bool draining_ = false;
  bool cut_off_ = false;
  Instant drain_end_ = Instant::max();  // when a drain stops waiting for the client
};

}  // namespace sightline::http
