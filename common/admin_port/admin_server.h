// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/admin_port/target.h"
#include "common/base/byte_budget.h"
#include "common/base/result.h"
#include "common/runtime/metrics.h"

namespace sightline::admin_port {

// A request to the admin port, after its header is parsed.
struct AdminRequest {
  // For example "GET". HEAD becomes "GET".
  std::string method;
  // Decoded, without the query.
  std::string path;
  // Decoded.
  Query query;
  std::string body;
  // The value of the Authorization header. Empty: the request has no credentials.
  std::string authorization;

  // The last value of the parameter `name`. Null: the query does not have it.
  [[nodiscard]] const std::string* find(const std::string& name) const {
    const auto values = query.find(name);
    return values == query.end() ? nullptr : &values->second.back();
  }
};

// An answer of the admin port.
struct AdminResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
};

// What a route checks before the body of a request is read.
struct Entry {
  // 0: the request may have no body.
  std::size_t body_bytes_max = 0;
  // Returns the answer to a request that its header refuses, or nothing. `body` is empty. May be
  // empty.
  std::function<std::optional<AdminResponse>(const AdminRequest& head)> guard = {};
};

// An error answer of the admin port: {"error":{"message","code"}}.
AdminResponse admin_error(int status, std::string_view message);

// The most connections of an admin port. A process that may open few files sets a lower limit.
inline constexpr std::size_t kConnectionsMax = 64;
// The most bytes of bodies that an admin port holds at the same time.
inline constexpr std::size_t kTotalBodyBytesMax = 64 << 20;

// The HTTP server of the admin port: health, metrics, and routes that others register. Not for
// clients. /healthz, /readyz and /metrics are built in. The server has its own threads, so a busy
// process stays observable: one answers /healthz and /readyz, two run all other routes.
// Thread safety: register before start() only. Guards and checks run on the I/O thread and must not
// wait. Routes run on two threads at the same time.
class AdminServer {
 public:
  using Route = std::function<AdminResponse(const AdminRequest&)>;
  // Answers the request, once, from any thread. If its last copy is destroyed without an answer,
  // the answer is 503.
  using Respond = std::function<void(const AdminResponse&)>;
  // For answers that wait for something: returns soon and responds later.
  using LateRoute = std::function<void(const AdminRequest&, const Respond&)>;
  // Done when ready. The error's message names the missing part.
  using Check = std::function<Result<Done>()>;
  // Like Check. The text says why it is ready, for ?verbose. It may be empty.
  using NotedCheck = std::function<Result<std::string>()>;

  struct Options {
    std::string host = "127.0.0.1";
    // 0: any free port.
    std::uint16_t port = 0;
    std::size_t connections_max = kConnectionsMax;
    // The charges for bodies and connections, see http::ServerOptions. Both outlive the server.
    ByteBudget* memory = nullptr;
    ByteBudget* connection_memory = nullptr;
  };

  // `metrics` must outlive the server.
  AdminServer(Options options, runtime::Metrics& metrics);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // Adds the route of a method and path. `entry` limits its requests.
  void add_route(std::string method, std::string path, Route route, Entry entry = {});
  void add_late_route(std::string method, std::string path, LateRoute route, Entry entry = {});
  // Adds a check of /readyz, which answers 200 if each check is Done, else 503. ?verbose lists the
  // checks. ?exclude=NAME, which may be repeated, skips a check, as in kube-apiserver.
  void add_check(std::string name, Check check);
  void add_noted_check(std::string name, NotedCheck check);

  // Binds and serves. Errors: Unavailable that names host, port and what to change.
  Result<Done> start();
  // The bound port, after start().
  [[nodiscard]] std::uint16_t port() const;
  // Stops serving. Requests without an answer after one second get 503. Waits for running routes.
  // Further calls have no effect.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::admin_port
