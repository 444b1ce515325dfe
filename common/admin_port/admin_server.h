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

struct AdminRequest {
  std::string method;  // "GET", of HEAD too
  std::string path;    // decoded, without query
  Query query;         // decoded
  std::string body;
  std::string authorization;  // value of that header; empty: there is none

  // The last value of a name; null: it is not there.
  [[nodiscard]] const std::string* find(const std::string& name) const {
    const auto values = query.find(name);
    return values == query.end() ? nullptr : &values->second.back();
  }
};

struct AdminResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
};

// What is asked of a request to a route before its body is read.
struct Entry {
  std::size_t body_bytes_max = 0;  // 0: it may have no body
  // The answer to a request that is not let in, by its header: `body` is empty. May be empty.
  std::function<std::optional<AdminResponse>(const AdminRequest& head)> guard = {};
};

// The error answer of the admin port: {"error":{"message","code"}}.
AdminResponse admin_error(int status, std::string_view message);

// Connections of an admin port, unless the process may open so few files that it says fewer.
inline constexpr std::size_t kConnectionsMax = 64;
// Bytes of bodies that an admin port holds at the same time.
inline constexpr std::size_t kTotalBodyBytesMax = 64 << 20;

// HTTP server of the admin port: health, metrics, and what others register; not for clients.
// /healthz, /readyz and /metrics are built in. It has threads of its own: one answers /healthz and
// /readyz, whatever the rest of the process does; two run all other routes.
// Thread safety: registration before start() only; guards and checks run on the I/O thread and wait
// for nothing, routes run on two threads at a time.
class AdminServer {
 public:
  using Route = std::function<AdminResponse(const AdminRequest&)>;
  // Answers the request, once, from any thread; the end of its last copy without that is a 503.
  using Respond = std::function<void(const AdminResponse&)>;
  // For answers that wait for something: returns soon and responds later.
  using LateRoute = std::function<void(const AdminRequest&, const Respond&)>;
  // Done when ready; the error's message says what is missing.
  using Check = std::function<Result<Done>()>;
  // The same with a note on why it is ready, which ?verbose shows; may be empty.
  using NotedCheck = std::function<Result<std::string>()>;

  struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;  // 0: a free one
    std::size_t connections_max = kConnectionsMax;
    // What bodies and connections are charged to, as of http::ServerOptions; outlive it.
    ByteBudget* memory = nullptr;
    ByteBudget* connection_memory = nullptr;
  };

  // Metrics must outlive the server.
  AdminServer(Options options, runtime::Metrics& metrics);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  void add_route(std::string method, std::string path, Route route, Entry entry = {});
  void add_late_route(std::string method, std::string path, LateRoute route, Entry entry = {});
  // /readyz answers 200 when every check is Done, else 503; with ?verbose it lists them. Those
  // named by ?exclude=NAME, which may be repeated, are not asked, as in kube-apiserver.
  void add_check(std::string name, Check check);
  void add_noted_check(std::string name, NotedCheck check);

  // Binds and serves. Errors: Unavailable, naming host, port and what to change.
  Result<Done> start();
  // The bound port, after start().
  [[nodiscard]] std::uint16_t port() const;
  // Stops serving: what is not answered within a second is answered 503. Waits for running routes.
  // Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::admin_port
