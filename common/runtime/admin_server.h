// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/runtime/metrics.h"

namespace sightline::runtime {

struct AdminRequest {
  std::string method;                                     // "GET"
  std::string path;                                       // decoded, without query
  std::map<std::string, std::vector<std::string>> query;  // decoded; all values of a name
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

// The error answer of the admin port: {"error":{"message","code"}}.
AdminResponse admin_error(int status, std::string_view message);

// HTTP server of the admin port: health, metrics, and what others register. Low rate; not for
// clients. /healthz, /readyz and /metrics are built in.
// Thread safety: registration before start() only; routes and checks run on the server's threads,
// up to four at a time. cpprestsdk has no others: a route must not wait there for anything.
class AdminServer {
 public:
  using Route = std::function<AdminResponse(const AdminRequest&)>;
  // Answers the request, once, from any thread; the end of its last copy without that is a 503.
  using Respond = std::function<void(const AdminResponse&)>;
  // For answers that take long: returns at once and responds later.
  using LateRoute = std::function<void(const AdminRequest&, const Respond&)>;
  // Done when ready; the error's message says what is missing.
  using Check = std::function<Result<Done>()>;
  // The same with a note on why it is ready, which ?verbose shows; may be empty.
  using NotedCheck = std::function<Result<std::string>()>;

  struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;  // 0: a free one
    std::size_t body_bytes_max = 64 << 20;
  };

  // Metrics must outlive the server.
  AdminServer(Options options, Metrics& metrics);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  void add_route(std::string method, std::string path, Route route);
  void add_late_route(std::string method, std::string path, LateRoute route);
  // /readyz answers 200 when every check is Done, else 503; with ?verbose it lists them. Those
  // named by ?exclude=NAME, which may be repeated, are not asked, as in kube-apiserver.
  void add_check(std::string name, Check check);
  void add_noted_check(std::string name, NotedCheck check);

  // Binds and serves. Errors: Unavailable, naming host, port and what to change.
  Result<Done> start();
  // The bound port, after start().
  [[nodiscard]] std::uint16_t port() const;
  // Stops serving; waits for running routes and late answers. Idempotent.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sightline::runtime
