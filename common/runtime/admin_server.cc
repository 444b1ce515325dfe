// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/admin_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <cpprest/http_listener.h>

#include "common/base/json.h"
#include "common/base/mutex.h"
#include "common/contract/names.h"
#include "common/runtime/cpprest_threads.h"
#include "common/runtime/port_sockets.h"

namespace sightline::runtime {
namespace {

namespace http = web::http;

constexpr int kFreePortTries = 8;
constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::chrono::seconds kLastRepliesMax{1};     // for replies under way when it stops
constexpr std::chrono::milliseconds kClosingTime{20};  // in which the sockets are closed
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string listener_url(const std::string& host, std::uint16_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return "http://" + (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port) + "/";
}

// Names without '=' have an empty value. Throws on malformed escapes.
std::map<std::string, std::vector<std::string>> query_of(std::string_view text) {
  std::map<std::string, std::vector<std::string>> query;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    query[web::uri::decode(std::string(part.substr(0, equals)))].push_back(
        web::uri::decode(std::string(value)));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return query;
}

// kube-apiserver's words.
std::string unknown_checks(const std::set<std::string>& names) {
  std::string line = "warn: some health checks cannot be excluded: no matches for ";
  for (const std::string& name : names)
    line += (line.back() == ' ' ? "" : ",") + json::to_quoted(name);
  return line + "\n";
}

// Path and query, decoded. Throws on malformed escapes.
AdminRequest request_of(const http::http_request& message) {
  AdminRequest request;
  request.method = message.method();
  request.path = web::uri::decode(message.relative_uri().path());
  request.query = query_of(message.relative_uri().query());
  const auto authorization = message.headers().find(http::header_names::authorization);
  if (authorization != message.headers().end()) request.authorization = authorization->second;
  return request;
}

// A body on its way in. The library answers only after the whole body has come, and would keep
// all of it: what is beyond the limit is read and dropped.
struct Incoming {
  http::http_request message;
  concurrency::streams::streambuf<std::uint8_t> source;
  std::array<std::uint8_t, kReadBytes> piece{};
  std::string body;
  bool is_too_long = false;

  void take(std::size_t count, std::size_t bytes_max) {
    is_too_long = is_too_long || body.size() + count > bytes_max;
    if (!is_too_long) body.append(reinterpret_cast<const char*>(piece.data()), count);
  }
};

}  // namespace

AdminResponse admin_error(int status, std::string_view message) {
  return {status, "{\"error\":{\"message\":" + json::to_quoted(message) +
                      ",\"code\":" + std::to_string(status) + "}}"};
}

struct AdminServer::State : std::enable_shared_from_this<AdminServer::State> {
  State(Options server_options, Metrics& server_metrics)
      : options(std::move(server_options)), metrics(server_metrics) {}

  const Options options;
  Metrics& metrics;
  std::map<std::string, std::map<std::string, LateRoute>> routes;  // path, then method
  std::vector<std::pair<std::string, NotedCheck>> checks;
  std::unique_ptr<http::experimental::listener::http_listener> listener;
  std::uint16_t port = 0;

  Mutex mutex;
  CondVar idle;
  std::size_t running SL_GUARDED_BY(mutex) = 0;
  // Of those running: their answer is on its way.
  std::size_t replying SL_GUARDED_BY(mutex) = 0;
  bool is_stopping SL_GUARDED_BY(mutex) = false;
  std::vector<std::pair<http::http_request, AdminResponse>> held_back SL_GUARDED_BY(mutex);

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

  void add(std::string_view method, std::string_view path, Route route) {
    routes[std::string(path)][std::string(method)] =
        [route = std::move(route)](const AdminRequest& request, const Respond& respond) {
          respond(route(request));
        };
  }

  void add_built_in_routes() {
    add("GET", contract::kLivePath, [](const AdminRequest&) {
      return AdminResponse{200, "ok\n", "text/plain"};
    });
    add("GET", contract::kReadyPath,
        [this](const AdminRequest& request) { return ready(request); });
    add("GET", contract::kMetricsPath, [this](const AdminRequest&) {
      return AdminResponse{200, metrics.scrape(), std::string(kMetricsType)};
    });
  }

  void answer(const AdminRequest& request, const Respond& respond) const {
    const auto methods = routes.find(request.path);
    if (methods == routes.end()) {
      return respond(admin_error(404, "no such path on the admin port: " + request.path));
    }
    const auto route = methods->second.find(request.method);
    if (route == methods->second.end()) {
      return respond(admin_error(405, "allowed here: " + methods->second.begin()->first));
    }
    route->second(request, respond);
  }

  // The one answer that a request gets.
  class Owed {
   public:
    Owed(std::shared_ptr<State> server, http::http_request message)
        : server_(std::move(server)), message_(std::move(message)) {}
    ~Owed() { give(admin_error(503, "the router is stopping")); }
    Owed(const Owed&) = delete;
    Owed& operator=(const Owed&) = delete;
    void give(const AdminResponse& response) {
      if (!given_.exchange(true)) server_->reply(message_, response);
    }

   private:
    const std::shared_ptr<State> server_;
    const http::http_request message_;
    std::atomic<bool> given_ = false;
  };

  // Ends the request: counted as running until the answer is out or the client is gone.
  void reply(const http::http_request& message, const AdminResponse& response) {
    {
      const MutexLock lock(mutex);
      if (is_stopping) {
        held_back.emplace_back(message, response);
        return;
      }
      ++replying;
    }
    send(message, response);
  }

  // Replies that came while the sockets were being closed.
  void send_held_back() {
    std::vector<std::pair<http::http_request, AdminResponse>> replies;
    {
      const MutexLock lock(mutex);
      replies.swap(held_back);
      replying += replies.size();
    }
    for (const auto& [message, response] : replies) send(message, response);
  }

  void send(const http::http_request& message, const AdminResponse& response) {
    http::http_response answer(static_cast<http::status_code>(response.status));
    answer.set_body(response.body, response.content_type);
    // A client that has gone is no error of ours; the task's exception must be looked at.
    message.reply(answer).then([self = shared_from_this()](const pplx::task<void>& sent) {
      try {
        sent.get();
      } catch (const std::exception&) {
      }
      self->finish_one();
    });
  }

  void run_route(Incoming& incoming) {
    const auto owed = std::make_shared<Owed>(shared_from_this(), incoming.message);
    const Respond respond = [owed](const AdminResponse& response) { owed->give(response); };
    if (incoming.is_too_long) {
      return respond(admin_error(413, "the body is longer than " +
                                          std::to_string(options.body_bytes_max) +
                                          " bytes (server.body_bytes_max)"));
    }
    try {
      AdminRequest request = request_of(incoming.message);
      request.body = std::move(incoming.body);
      answer(request, respond);
    } catch (const web::uri_exception&) {
      respond(admin_error(400, "malformed escape in the request's path or query"));
    } catch (const std::exception& failure) {
      respond(admin_error(500, std::string("failure of the router: ") + failure.what()));
    }
  }

  // For a moment. False: there are requests, or the listener is still at it.
  bool wait_until_over(const pplx::task<void>& closed) {
    const MutexLock lock(mutex);
    return idle.wait_for(mutex, kClosingTime,
                         [&]() SL_REQUIRES(mutex) { return closed.is_done() && running == 0; });
  }

  void finish_one() {
    {
      const MutexLock lock(mutex);
      --running;
      --replying;
    }
    idle.notify_all();
  }

  // Called by the library as soon as the headers are there. The body comes by continuations:
  // waiting for it here could use up all threads.
  void receive(const http::http_request& message) {
    {
      const MutexLock lock(mutex);
      ++running;
    }
    auto incoming = std::make_shared<Incoming>();
    incoming->message = message;
    incoming->source = message.body().streambuf();
    read_on(std::move(incoming));
  }

  void read_on(std::shared_ptr<Incoming> incoming) {
    auto self = shared_from_this();
    auto piece = incoming->source.getn(incoming->piece.data(), incoming->piece.size());
    piece.then([self, incoming](const pplx::task<std::size_t>& read) {
      std::size_t count = 0;
      try {
        count = read.get();
      } catch (const std::exception&) {
        self->reply(incoming->message, admin_error(400, "the body broke off"));
        return;
      }
      if (count == 0) return self->run_route(*incoming);
      incoming->take(count, self->options.body_bytes_max);
      self->read_on(incoming);
    });
  }

  Result<Done> open(std::uint16_t wanted) {
    try {
      auto opened = std::make_unique<http::experimental::listener::http_listener>(
          listener_url(options.host, wanted));
      opened->support([this](const http::http_request& message) { receive(message); });
      opened->open().wait();
      listener = std::move(opened);
      port = wanted;
      return Done{};
    } catch (const std::exception& failure) {
      Error error = internal_error("admin port: cannot listen on " + options.host + ":" +
                                   std::to_string(wanted) + " (" + failure.what() +
                                   "): change --admin-host or --admin-port");
      error.code = ErrorCode::Unavailable;
      return error;
    }
  }
};

AdminServer::AdminServer(Options options, Metrics& metrics)
    : state_(std::make_shared<State>(std::move(options), metrics)) {
  state_->add_built_in_routes();
}

AdminServer::~AdminServer() { stop(); }

void AdminServer::add_route(std::string method, std::string path, Route route) {
  state_->add(method, path, std::move(route));
}

void AdminServer::add_late_route(std::string method, std::string path, LateRoute route) {
  state_->routes[std::move(path)][std::move(method)] = std::move(route);
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
  prepare_cpprest();
  if (state_->options.port != 0) return state_->open(state_->options.port);
  Result<Done> opened = Done{};
  for (int i = 0; i < kFreePortTries; ++i) {
    opened = state_->open(free_port(state_->options.host).value_or(0));
    if (opened.ok()) break;
  }
  return opened;
}

std::uint16_t AdminServer::port() const { return state_->port; }

// cpprestsdk closes the sockets of its connections without regard to writes that begin at that
// moment on other threads: such a write crashes, one that begins later fails in good order. So
// replies under way are awaited before, and new ones held back until the sockets are closed.
// Nor has it regard to connections that it accepts at that moment: it crashes, or waits until their
// clients leave. So none come any more, and what it took up all the same is ended.
void AdminServer::stop() {
  if (!state_->listener) return;
  {
    const MutexLock lock(state_->mutex);
    state_->is_stopping = true;
    state_->idle.wait_for(state_->mutex, kLastRepliesMax,
                          [this]() SL_REQUIRES(state_->mutex) { return state_->replying == 0; });
  }
  end_accepting(state_->port, kLastRepliesMax, kClosingTime);
  const auto closed = state_->listener->close();
  while (!state_->wait_until_over(closed)) {
    state_->send_held_back();
    shut_connections(state_->port);
  }
  try {
    closed.wait();
  } catch (const std::exception&) {
    // The listener is gone either way.
  }
  state_->listener.reset();
}

}  // namespace sightline::runtime
