// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/server.h"

#include <algorithm>
#include <new>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <asio/associated_executor.hpp>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <sys/socket.h>

#include "common/base/authority.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/out_of_memory.h"
#include "common/http/server_connection.h"

namespace sightline::http {
namespace {

using asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;

// The pause after a failed accept, for example when file descriptors have run out.
constexpr std::chrono::milliseconds kAcceptPause{50};
constexpr std::chrono::seconds kComplaintInterval{10};  // between two log lines about this
constexpr std::chrono::seconds kForcedCloseGrace{5};
// How many connections may be turned away at the same time. They use descriptors beyond
// connections_max.
constexpr std::size_t kTurnedAwayMax = 16;

}  // namespace

// The part of the server that one I/O thread owns.
struct Listener {
  Listener(IoPool& io_pool, std::size_t thread, std::shared_ptr<ServerContext> shared)
      : pool(io_pool),
        index(thread),
        context(std::move(shared)),
        acceptor(io_pool.context(thread).get_executor()) {}

  IoPool& pool;
  std::size_t index;
  std::shared_ptr<ServerContext> context;
  Acceptor acceptor;
  std::unordered_set<ServerConnection*> connections;
  Instant next_complaint{};  // when failed accepts may be logged again
};

namespace {

Error cannot_listen(const ServerOptions& options, const asio::error_code& code) {
  return {.code = ErrorCode::Unavailable,
          .blame = Blame::Internal,
          .retryable = false,
          .message = "cannot listen on " + authority(options.host, options.port) + ": " +
                     code.message() + ". Choose another " + options.port_flags,
          .param = {}};
}

Result<tcp::endpoint> resolve_listen(asio::io_context& context, const ServerOptions& options) {
  asio::error_code code;
  const auto literal = asio::ip::make_address(options.host, code);
  if (!code) return tcp::endpoint(literal, options.port);
  asio::ip::basic_resolver<tcp, Executor> resolver(context.get_executor());
  const auto found = resolver.resolve(options.host, "", code);
  if (code || found.empty()) {
    return client_error(
        ErrorCode::InvalidArgument,
        "the listen host '" + options.host + "' is neither an address nor a known name", "host");
  }
  return tcp::endpoint(found.begin()->endpoint().address(), options.port);
}

bool is_any_of_six(const tcp::endpoint& endpoint) {
  return endpoint.address().is_v6() && endpoint.address().is_unspecified();
}

// If the kernel has no IPv6 (ipv6.disable=1), "::" means all addresses of IPv4.
tcp::endpoint possible(asio::io_context& context, const tcp::endpoint& endpoint,
                       const ServerOptions& options) {
  if (!is_any_of_six(endpoint)) return endpoint;
  Acceptor probe(context.get_executor());
  asio::error_code code;
  probe.open(endpoint.protocol(), code);
  if (code != asio::error::address_family_not_supported) return endpoint;
  log(LogLevel::Warn, "this machine has no IPv6: the server listens on 0.0.0.0 in place of ::",
      {{"setting", options.port_flags}, {"port", endpoint.port()}});
  return {asio::ip::address_v4::any(), endpoint.port()};
}

asio::error_code listen_on(Acceptor& acceptor, const tcp::endpoint& endpoint, bool shared) {
  asio::error_code code;
  acceptor.open(endpoint.protocol(), code);
  if (code) return code;
  acceptor.set_option(Acceptor::reuse_address(true), code);
  // "::" also accepts connections to IPv4 addresses, independent of net.ipv6.bindv6only.
  if (is_any_of_six(endpoint)) acceptor.set_option(asio::ip::v6_only(false), code);
  const int on = 1;
  if (shared &&
      setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
    return {errno, asio::error::get_system_category()};
  }
  acceptor.bind(endpoint, code);
  if (code || !shared) return code;
  acceptor.listen(asio::socket_base::max_listen_connections, code);
  return code;
}

// Decrements a counter of the context. At 0 it wakes the thread that waits for the end. Takes the
// mutex first, so the waiter cannot miss it between its check and its wait.
void leave(ServerContext& context, std::atomic<std::size_t>& count) {
  if (count.fetch_sub(1) != 1) return;
  const MutexLock lock(context.mutex);
  context.all_gone.notify_all();
}

// Serves a connection that has a place, or reports why it has no place.
Task<void> serve_connection(std::shared_ptr<Listener> listener, Wire::Socket socket,
                            std::optional<Error> refused) {
  auto& context = *listener->context;
  ServerConnection connection(std::move(socket), listener->pool.deadlines(listener->index), context,
                              context.idle[listener->index]);
  listener->connections.insert(&connection);
  // The connection was accepted while the drain began, so the drain did not reach it.
  if (context.draining) connection.drain();
  if (refused) {
    co_await connection.turn_away(std::move(*refused));
    context.turned_away.fetch_sub(1);
  } else {
    co_await connection.run();
  }
  listener->connections.erase(&connection);
  leave(context, context.connections);
}

void start_connection(const std::shared_ptr<Listener>& listener, Wire::Socket socket,
                      std::optional<Error> refused) {
  listener->context->connections.fetch_add(1);
  asio::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const bool is_refused = refused.has_value();
  try {
    spawn(listener->pool.context(listener->index).get_executor(),
          serve_connection(listener, std::move(socket), std::move(refused)));
    // The coroutine was not made, so its counts go back here.
  } catch (const std::bad_alloc&) {
    auto& context = *listener->context;
    count_allocation_failure();
    context.connections.fetch_sub(1);
    if (!is_refused) return context.give_place();
    context.turned_away.fetch_sub(1);
  }
}

// Waits, because what failed may succeed later.
Task<void> pause(const std::shared_ptr<Listener>& listener) {
  Gate paused;
  Deadline end(listener->pool.deadlines(listener->index), [&paused] { paused.open(); });
  end.set(kAcceptPause);
  co_await paused.wait();
}

// Closes the connection that has waited longest for a request, at least idle_min, on any I/O
// thread. Returns false if no connection gives way.
Task<bool> make_room(const std::shared_ptr<Listener>& listener, Duration idle_min) {
  auto& idle = listener->context->idle;
  // The times are atomic and may change. A wrong choice costs only fairness.
  const auto longest = std::min_element(idle.begin(), idle.end(), [](const auto& a, const auto& b) {
    return a.waits_since() < b.waits_since();
  });
  const Instant since = longest->waits_since();
  if (since == Instant::max() || system_clock().now() - since < idle_min) co_return false;
  const auto thread = static_cast<std::size_t>(longest - idle.begin());
  if (thread == listener->index) co_return longest->close_longest();
  bool closed = false;
  auto start = [&](auto resume) {
    auto there = [&closed, &longest, resume = std::move(resume)]() mutable {
      closed = longest->close_longest();
      auto home = asio::get_associated_executor(resume);
      asio::post(home, std::move(resume));
    };
    // Only its own thread may close a connection.
    asio::post(listener->pool.context(thread), std::move(there));
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<Executor>&, void()>(start, use_task);
  co_return closed;
}

// Returns why a connection cannot be served, or nothing if it has a place.
Task<std::optional<Error>> find_place(const std::shared_ptr<Listener>& listener, int descriptor) {
  auto& context = *listener->context;
  if (descriptor >= context.options.limits.descriptor_max) {
    // Makes room for the next connection: this one keeps its descriptor in any case.
    static_cast<void>(co_await make_room(listener, context.options.limits.idle_kept));
    co_return overload_error("open-files", "the router has no descriptor for one more connection");
  }
  while (!context.take_place()) {
    const bool has_room = co_await make_room(listener, Duration::zero());
    if (!has_room) co_return context.no_place();
  }
  co_return std::nullopt;
}

Task<void> admit(const std::shared_ptr<Listener>& listener, Wire::Socket socket) {
  auto& context = *listener->context;
  auto refused = co_await find_place(listener, socket.native_handle());
  // Above this number, the others wait in the kernel's queue, where no reset ends them.
  while (refused && context.turned_away >= kTurnedAwayMax && !context.draining) {
    co_await pause(listener);
  }
  if (refused) context.turned_away.fetch_add(1);
  start_connection(listener, std::move(socket), std::move(refused));
}

// Serves the connections that are established already: closing the listener would reset them.
void stop_accepting(const std::shared_ptr<Listener>& listener) {
  auto& context = *listener->context;
  auto& acceptor = listener->acceptor;
  asio::error_code code;
  // accept() must return when the queue is empty.
  acceptor.non_blocking(true, code);
  while (!code) {
    auto socket = acceptor.accept(code);
    if (code) break;
    std::optional<Error> refused;
    if (!context.take_place()) refused = stopping_error("the connection was accepted");
    if (refused) context.turned_away.fetch_add(1);
    start_connection(listener, std::move(socket), std::move(refused));
  }
  acceptor.close(code);
}

// Logs failed accepts at most once in kComplaintInterval.
void tell_failed(const std::shared_ptr<Listener>& listener, const asio::error_code& code) {
  const Instant now = system_clock().now();
  if (now >= listener->next_complaint) {
    listener->next_complaint = now + kComplaintInterval;
    log(LogLevel::Warn, "cannot accept a connection", {{"error", code.message()}});
  }
  if (const auto& told = listener->context->options.accept_failed) told();
}

Task<void> accept_connections(std::shared_ptr<Listener> listener) {
  while (listener->acceptor.is_open()) {
    asio::error_code code;
    auto token = asio::redirect_error(use_task, code);
    auto socket = co_await listener->acceptor.async_accept(token);
    if (!code) {
      co_await admit(listener, std::move(socket));
      continue;
    }
    // The drain closed the acceptor.
    if (!listener->acceptor.is_open()) break;
    tell_failed(listener, code);
    const bool has_room = co_await make_room(listener, listener->context->options.limits.idle_kept);
    // Without a pause the loop would fail again immediately and use a whole core.
    if (!has_room) co_await pause(listener);
  }
  leave(*listener->context, listener->context->acceptors);
}

}  // namespace

Error stopping_error(std::string_view when) {
  return Error{ErrorCode::Unavailable,
               Blame::Internal,
               false,
               "the server stopped before " + std::string(when) + ". Try again on another server",
               {},
               {}};
}

struct Server::State {
  IoPool& pool;
  std::shared_ptr<ServerContext> context;
  std::vector<std::shared_ptr<Listener>> listeners;
  std::uint16_t port = 0;

  // Stops accepting and calls each(connection), on the threads of the connections.
  template <class Each>
  void on_all_connections(Each each) {
    for (const auto& listener : listeners) {
      asio::post(pool.context(listener->index), [listener, each] {
        stop_accepting(listener);
        // A copy, because a connection that ends leaves the set.
        const std::vector<ServerConnection*> connections(listener->connections.begin(),
                                                         listener->connections.end());
        for (auto* const connection : connections) {
          if (listener->connections.count(connection) != 0) each(*connection);
        }
      });
    }
  }

  // An accept that the kernel has completed becomes a connection after the acceptor was closed, so
  // the acceptors count too.
  [[nodiscard]] bool is_over() const {
    return context->acceptors == 0 && context->connections == 0;
  }

  bool wait_all_gone(Duration timeout) {
    const MutexLock lock(context->mutex);
    return context->all_gone.wait_for(context->mutex, timeout, [this] { return is_over(); });
  }
};

Server::Server(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Server>> Server::create(IoPool& pool, ServerOptions options,
                                               Responder handler) {
  auto endpoint = SL_TRY(resolve_listen(pool.context(0), options));
  endpoint = possible(pool.context(0), endpoint, options);
  auto context =
      std::make_shared<ServerContext>(std::move(options), std::move(handler), pool.size());
  auto state = std::make_shared<State>(State{pool, context, {}, 0});
  if (endpoint.port() != 0) {
    // With SO_REUSEPORT two processes could share the port unnoticed, so check first that it is
    // free.
    Acceptor probe(pool.context(0).get_executor());
    if (const auto code = listen_on(probe, endpoint, false)) {
      return cannot_listen(context->options, code);
    }
  }
  for (std::size_t i = 0; i < pool.size(); ++i) {
    auto listener = std::make_shared<Listener>(pool, i, context);
    const auto code = listen_on(listener->acceptor, endpoint, true);
    if (code) return cannot_listen(context->options, code);
    // With port 0, the first listener gets a free port, and the others must use the same.
    endpoint = listener->acceptor.local_endpoint();
    state->listeners.push_back(std::move(listener));
  }
  state->port = endpoint.port();
  context->acceptors = state->listeners.size();
  for (const auto& listener : state->listeners) {
    spawn(pool.context(listener->index).get_executor(), accept_connections(listener));
  }
  return std::make_unique<Server>(std::move(state));
}

Server::~Server() { drain(Duration::zero()); }

std::uint16_t Server::port() const { return state_->port; }

std::size_t Server::active_requests() const { return state_->context->active_requests; }

bool Server::drain(Duration timeout) {
  auto& state = *state_;
  // A stopped pool runs no coroutine, so waiting would only pass time.
  if (!state.pool.running()) return state.context->connections == 0;
  state.context->draining = true;
  state.on_all_connections([](ServerConnection& connection) { connection.drain(); });
  if (state.wait_all_gone(timeout)) return true;
  state.on_all_connections([](ServerConnection& connection) { connection.cut_off(); });
  // Zero closes without answers, so it needs no grace.
  const Duration grace = timeout > Duration::zero() ? Duration(kCutOffGrace) : Duration::zero();
  if (state.wait_all_gone(grace)) return !state.context->cut_off;
  state.on_all_connections([](ServerConnection& connection) { connection.force_close(); });
  if (!state.wait_all_gone(kForcedCloseGrace)) {
    log(LogLevel::Warn, "connections are still open after the server has stopped",
        {{"connections", state.context->connections.load()}});
  }
  return !state.context->cut_off;
}

}  // namespace sightline::http
