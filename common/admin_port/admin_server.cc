// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/admin_port/admin_server.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/admin_port/owed.h"
#include "common/base/json.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/names.h"
#include "common/http/server.h"
#include "common/runtime/io_pool.h"

namespace sightline::admin_port {
namespace {

constexpr std::size_t kRouteThreads = 2;
constexpr std::size_t kHeaderBytesMax = 16 << 10;
constexpr std::size_t kHeaderFieldsMax = 64;
constexpr std::chrono::seconds kBodyTimeout{10};
constexpr std::chrono::seconds kLastAnswersMax{1};  // for active requests, at a stop
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// In the words of kube-apiserver.
std::string unknown_checks(const std::set<std::string>& names) {
  std::string line = "warn: some health checks cannot be excluded: no matches for ";
  for (const std::string& name : names)
    line += (line.back() == ' ' ? "" : ",") + json::to_quoted(name);
  return line + "\n";
}

// For a request whose header is complete.
Result<AdminRequest> request_of(const http::Request& head) {
  AdminRequest request;
  request.method = head.method == "HEAD" ? "GET" : head.method;
  request.path = SL_TRY(decode_escapes(head.path()));
  request.query = SL_TRY(decode_query(head.query()));
  request.authorization = head.headers.find("authorization").value_or("");
  return request;
}

http::Response response_of(AdminResponse&& response) {
  return {.status = response.status,
          .headers = {{"content-type", response.content_type}},
          .body = std::move(response.body)};
}

}  // namespace

AdminResponse admin_error(int status, std::string_view message) {
  return {status, "{\"error\":{\"message\":" + json::to_quoted(message) +
                      ",\"code\":" + std::to_string(status) + "}}"};
}

struct AdminServer::State {
  struct Way {
    LateRoute route;
    Entry entry;
    bool is_prompt = false;  // runs on the I/O thread and responds before it returns
  };

  State(Options server_options, runtime::Metrics& server_metrics)
      : options(std::move(server_options)), metrics(server_metrics) {}

  const Options options;
  runtime::Metrics& metrics;
  std::map<std::string, std::map<std::string, Way>> ways;  // by path, then method
  std::vector<std::pair<std::string, NotedCheck>> checks;
  std::optional<IoPool> pool;
  std::unique_ptr<http::Server> server;
  std::uint16_t port = 0;

  AdminResponse ready(const AdminRequest& request) const {
    std::set<std::string> excluded;
    if (const auto names = request.query.find("exclude"); names != request.query.end()) {
      excluded.insert(names->second.begin(), names->second.end());
    }
    std::string list;
    bool is_ready = true;
    for (const auto& [name, check] : checks) {
      if (excluded.erase(name) > 0) {
        list += "[+] " + name + " excluded\n";
        continue;
      }
      const Result<std::string> result = check();
      is_ready = is_ready && result.ok();
      const std::string& why = result.ok() ? *result : result.error().message;
      list += (result.ok() ? "[+] " : "[-] ") + name + (why.empty() ? "" : ": " + why) + "\n";
    }
    if (!excluded.empty()) list += unknown_checks(excluded);
    const std::string verdict = is_ready ? "ready\n" : "not ready\n";
    const bool is_verbose = request.query.contains("verbose");
    return {is_ready ? 200 : 503, is_verbose ? list + verdict : verdict, "text/plain"};
  }

  static LateRoute at_once(Route route) {
    return [route = std::move(route)](const AdminRequest& request, const Respond& respond) {
      respond(route(request));
    };
  }

  void add_built_in_routes() {
    const auto live = [](const AdminRequest&) { return AdminResponse{200, "ok\n", "text/plain"}; };
    const auto is_ready = [this](const AdminRequest& request) { return ready(request); };
    const auto scrape = [this](const AdminRequest&) {
      return AdminResponse{200, metrics.scrape(), std::string(kMetricsType)};
    };
    ways[std::string(contract::kLivePath)]["GET"] = {at_once(live), {}, true};
    ways[std::string(contract::kReadyPath)]["GET"] = {at_once(is_ready), {}, true};
    // Not prompt: a scrape may read files (nats::watch_certificates()).
    ways[std::string(contract::kMetricsPath)]["GET"] = {at_once(scrape), {}, false};
  }

  // Returns null, and the answer in `why`, if there is no route.
  const Way* find(const AdminRequest& request, http::Response& why) const {
    const auto methods = ways.find(request.path);
    if (methods == ways.end()) {
      why = response_of(admin_error(404, "no such path on the admin port: " + request.path));
      return nullptr;
    }
    const auto way = methods->second.find(request.method);
    if (way != methods->second.end()) return &way->second;
    std::string allowed;
    for (const auto& [method, unused] : methods->second) {
      allowed += (allowed.empty() ? "" : ", ") + method;
    }
    why = response_of(admin_error(405, "allowed here: " + allowed));
    why.headers.set("allow", allowed);
    return nullptr;
  }

  http::Admission admit(const http::Request& head) const {
    const auto request = request_of(head);
    if (!request.ok()) return {.refusal = response_of(admin_error(400, request.error().message))};
    http::Response why;
    const Way* const way = find(*request, why);
    if (way == nullptr) return {.refusal = std::move(why)};
    std::optional<AdminResponse> refused;
    if (way->entry.guard) refused = way->entry.guard(*request);
    if (refused) return {.refusal = response_of(std::move(*refused))};
    return {.refusal = {}, .body_bytes_max = way->entry.body_bytes_max};
  }

  // A route that fails must not end the process.
  static void run(const Way& way, const AdminRequest& request, const Respond& respond) {
    try {
      way.route(request, respond);
    } catch (const std::exception& failure) {
      respond(admin_error(500, std::string("internal error: ") + failure.what()));
    }
  }

  // For an admitted request.
  Task<void> answer(http::Request& message, http::ResponseWriter& client) {
    auto request = request_of(message);
    http::Response response;
    const Way* const way = request.ok() ? find(*request, response) : nullptr;
    if (way == nullptr) co_return;
    request->body = std::move(message.body);
    auto answered = co_await ask(*way, *request, client);
    if (!answered) co_return;  // the client has left, or the server answers that it stops
    response = response_of(std::move(*answered));
    static_cast<void>(co_await client.send(std::move(response)));
  }

  // Returns nothing if the client has left, or if it is too late.
  Task<std::optional<AdminResponse>> ask(const Way& way, const AdminRequest& request,
                                         http::ResponseWriter& client) {
    Gate come;
    const auto owed = std::make_shared<Owed>(pool->context(0).get_executor(), come);
    // On every way out of this function.
    const auto leave = [](Owed* left) { left->abandon(); };
    const std::unique_ptr<Owed, decltype(leave)> awaited(owed.get(), leave);
    client.on_disconnect([&come, owed] {
      owed->abandon();
      come.open();
    });
    if (way.is_prompt) {
      run(way, request, owed->respond());
      co_return owed->take();
    }
    // No work for a client that has left by then.
    auto work = [&] {
      if (owed->is_awaited()) run(way, request, owed->respond());
    };
    const Effort effort;
    co_await run_on_compute(*pool, effort, std::move(work));
    co_await come.wait();
    client.on_disconnect({});
    co_return owed->take();
  }

  [[nodiscard]] http::ServerOptions server_options() {
    http::ServerOptions made{.host = options.host, .port = options.port};
    made.memory = options.memory;
    made.connection_memory = options.connection_memory;
    made.port_flags = "--admin-host or --admin-port";
    made.limits.header_bytes_max = kHeaderBytesMax;
    made.limits.header_fields_max = kHeaderFieldsMax;
    made.limits.total_body_bytes_max = kTotalBodyBytesMax;
    made.limits.connections_max = options.connections_max;
    made.limits.body_timeout = kBodyTimeout;
    made.admission = [this](const http::Request& head) { return admit(head); };
    made.refusal = [this](int status, const Error& error) {
      if (!error.limit.empty()) {
        metrics.counter(contract::kLimitHitsTotal, {error.limit}).add();
      }
      return response_of(admin_error(status, error.message));
    };
    made.accept_failed = [this] {
      metrics.counter(contract::kLimitHitsTotal, {"open-files"}).add();
    };
    return made;
  }
};

AdminServer::AdminServer(Options options, runtime::Metrics& metrics)
    : state_(std::make_unique<State>(std::move(options), metrics)) {
  state_->add_built_in_routes();
}

AdminServer::~AdminServer() { stop(); }

void AdminServer::add_route(std::string method, std::string path, Route route, Entry entry) {
  add_late_route(std::move(method), std::move(path), State::at_once(std::move(route)),
                 std::move(entry));
}

void AdminServer::add_late_route(std::string method, std::string path, LateRoute route,
                                 Entry entry) {
  state_->ways[std::move(path)][std::move(method)] = {std::move(route), std::move(entry), false};
}

void AdminServer::add_check(std::string name, Check check) {
  add_noted_check(std::move(name), [check = std::move(check)]() -> Result<std::string> {
    SL_TRY(check());
    return std::string();
  });
}

void AdminServer::add_noted_check(std::string name, NotedCheck check) {
  state_->checks.emplace_back(std::move(name), std::move(check));
}

Result<Done> AdminServer::start() {
  State& state = *state_;
  state.pool.emplace(
      IoPoolOptions{.io_threads = 1, .compute_threads = kRouteThreads, .name = "admin"});
  auto answer = [&state](http::Request& message, http::ResponseWriter& client) {
    return state.answer(message, client);
  };
  auto server = http::Server::create(*state.pool, state.server_options(), std::move(answer));
  if (!server.ok()) return with_context(std::move(server).error(), "admin port");
  state.server = std::move(*server);
  state.port = state.server->port();
  return Done{};
}

std::uint16_t AdminServer::port() const { return state_->port; }

void AdminServer::stop() {
  if (!state_->server) return;
  static_cast<void>(state_->server->drain(kLastAnswersMax));
  state_->pool->stop();
  state_->server.reset();
}

}  // namespace sightline::admin_port
