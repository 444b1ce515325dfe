// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/http/codec.h"
#include "common/http/server.h"
#include "common/http/wire.h"

namespace sightline::http {

// What the connections of one server share.
struct ServerContext {
  ServerContext(ServerOptions server_options, Responder responder)
      : options(std::move(server_options)), handler(std::move(responder)) {}

  const ServerOptions options;
  const Responder handler;
  std::atomic<std::size_t> acceptors{0};  // threads that may still admit a connection
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> active_requests{0};
  // Of requests, in memory.
  ByteBudget body_bytes{options.limits.total_body_bytes_max,
                        {.parent = options.memory, .limit = "total-body-bytes-max"}};
  std::atomic<bool> draining{false};
  std::atomic<bool> cut_off{false};  // some request did not end by itself
  Mutex mutex;                       // held only to make one of the two reaching 0 noticeable
  CondVar all_gone;                  // acceptors == 0 && connections == 0
};

// The answer to a request that the server refuses, by the owner's shape if there is one.
Response refusal_response(const ServerOptions& options, int status, const Error& error);

// One client's connection: reads requests, runs the handler, writes answers, in order.
// Thread safety: none; belongs to one I/O thread. The context outlives it.
class ServerConnection {
 public:
  ServerConnection(Wire::Socket socket, Deadlines& deadlines, ServerContext& context);

  // Serves until the connection ends.
  Task<void> run();

  // Ends the connection once its request, or one that comes very soon, is answered.
  void drain();
  // Has a running handler end its answer now, and ends the connection with it.
  void cut_off();
  // Ends it at once; a running handler is told.
  void force_close();

  // For ResponseWriter, with its contracts.
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

  Task<bool> read_request();
  Task<bool> read_head();
  Task<bool> read_body();
  Task<bool> read_known_body(std::size_t bytes);
  Task<bool> read_chunked_body();
  Task<bool> expect_continue();
  Task<void> answer();
  Task<bool> refuse(int status, Error error);
  Task<bool> refuse_undecodable();
  Task<bool> refuse_slow(Io how, std::string_view what);
  Task<bool> refuse_large_body();
  // No room for a body of so many bytes.
  Task<bool> refuse_crowded(std::size_t bytes);
  // Counts what has come of the body; false if all connections together would hold too much. Then
  // it is not counted any more, so that it makes room for others before it is answered.
  [[nodiscard]] bool hold_body();
  void release_body();
  Task<void> linger();
  void receive_ahead();
  void notice_disconnect();
  void tell_handler();
  // How long to wait for the client's bytes: `usual`, or what is left of a drain.
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
  std::shared_ptr<Wire> wire_;
  RequestDecoder decoder_;
  std::string peer_;
  Request request_;
  std::string head_;  // of the answer, or of a chunk
  std::function<void()> on_disconnect_;
  std::size_t held_body_bytes_ = 0;  // of this request, counted in the context
  std::size_t announced_bytes_ = 0;  // of its body, by its header
  Phase phase_ = Phase::Idle;
  Framing::Kind framing_ = Framing::Kind::None;
  bool http11_ = true;
  bool head_only_ = false;
  bool client_keeps_alive_ = false;
  bool disconnected_ = false;
  bool broken_ = false;  // nothing more can be sent
  bool draining_ = false;
  bool cut_off_ = false;
  Instant drain_end_ = Instant::max();  // of waiting for the client's bytes
};

}  // namespace sightline::http
