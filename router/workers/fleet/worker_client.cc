// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/worker_client.h"

#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <asio/post.hpp>

#include "common/base/mutex.h"
#include "common/http/exchange.h"

#include "router/engine/family/models.h"

namespace sightline::fleet {
namespace {

using http::Failure;

// The result of a call: the body of a 200, or why there is no body.
struct EngineAnswer {
  Result<std::string> body;
  int status = 0;        // 0: no answer came
  bool refused = false;  // nothing listens there
};

// One GET. The key is sent only to this server.
struct EngineRequest {
  http::ServerAddress engine;
  std::string path;
  std::string api_key;  // empty: no key
};

Error unavailable(std::string_view message) {
  return worker_error(ErrorCode::Unavailable, std::string(message), true);
}

Error no_answer_in_time() { return worker_error(ErrorCode::Timeout, "no answer in time", true); }

// Returns why an exchange failed, in words that follow a worker's name.
Error reason_of(const http::Exchange& exchange, Error error) {
  // A failure of the router itself must not be blamed on the worker.
  if (error.blame == Blame::Internal) return error;
  if (exchange.connection_refused()) return unavailable("connection refused");
  if (error.code == ErrorCode::Timeout) return no_answer_in_time();
  switch (exchange.failure()) {
    case Failure::Connect:
      return unavailable("the host is unknown or unreachable");
    case Failure::NoAnswer:
    case Failure::BrokenOff:
      return unavailable("connection broke off");
    default:
      return error;
  }
}

ErrorCode code_of(int status) {
  if (status == 401 || status == 403) return ErrorCode::Unauthorized;
  return status == 404 ? ErrorCode::NotFound : ErrorCode::Unavailable;
}

// The parts of a probe as they arrive, in any order.
struct ProbeParts {
  Probe probe;
  int missing = 4;
  std::function<void(Probe)> done;

  void put() {
    if (--missing > 0) return;
    // A server without /health counts as healthy if it reports its models, or would with a key.
    const bool has_models =
        probe.models.ok() || probe.models.error().code == ErrorCode::Unauthorized;
    if (!probe.health.ok() && probe.health.error().code == ErrorCode::NotFound && has_models) {
      probe.health = Done{};
    }
    done(std::move(probe));
  }

  // Only the status counts. The body has no meaning.
  void put_health(const EngineAnswer& answer) {
    // A server that refuses the key is alive.
    const bool wants_key = code_of(answer.status) == ErrorCode::Unauthorized;
    if (!answer.body.ok() && answer.status != 200 && !wants_key) {
      probe.health = answer.body.error();
    }
    probe.refused = answer.refused;
    probe.is_unwell = answer.status >= 500;
    put();
  }
};

}  // namespace

struct WorkerClient::State {
  explicit State(const Options& client_options) : options(client_options) {}

  // A running call. Its coroutine owns it.
  struct Running {
    http::Exchange* exchange = nullptr;
    bool is_given_up = false;

    void give_up() {
      is_given_up = true;
      if (exchange != nullptr) exchange->cancel();
    }
  };

  const Options options;
  IoPool pool{{.io_threads = 1, .compute_threads = 0, .name = "fleet"}};
  http::Client client = make_client();

  // Only the I/O thread uses it. Calls begin in their order, so it has all of them when stop()
  // cancels.
  std::unordered_set<Running*> calls;

  Mutex mutex;
  CondVar idle;
  std::size_t unfinished SL_GUARDED_BY(mutex) = 0;  // begun and not called back

  http::Client make_client() {
    // One idle connection for each worker, so a probe opens no new connection for its first call.
    const http::ClientOptions kept{.idle_per_endpoint_max = 1,
                                   .idle_per_thread_max = std::numeric_limits<std::size_t>::max()};
    return options.names != nullptr ? http::Client(pool, kept, *options.names)
                                    : http::Client(pool, kept);
  }

  void get(EngineRequest question, std::function<void(EngineAnswer)> done) {
    {
      const MutexLock lock(mutex);
      ++unfinished;
    }
    spawn(pool.context(0).get_executor(), call(std::move(question), std::move(done)));
  }

  Task<void> call(EngineRequest question, std::function<void(EngineAnswer)> done) {
    Running running;
    calls.insert(&running);
    auto give_up = [&running] { running.give_up(); };
    Deadline deadline(pool.deadlines(0), give_up);
    deadline.set(options.timeout);
    EngineAnswer answer = co_await ask(question, running);
    calls.erase(&running);
    done(std::move(answer));
    const MutexLock lock(mutex);
    --unfinished;
    idle.notify_all();
  }

  Task<EngineAnswer> ask(const EngineRequest& question, Running& running) {
    http::Call request{.endpoint = question.engine,
                       .head = {"GET", question.path, {}},
                       .body = {},
                       .timeouts = {.connect = options.timeout,
                                    .write = options.timeout,
                                    .first_byte = options.timeout,
                                    .between_bytes = options.timeout}};
    if (!question.api_key.empty()) {
      request.head.headers.set("authorization", "Bearer " + question.api_key);
    }
    while (!running.is_given_up) {
      http::Exchange exchange(client);
      running.exchange = &exchange;
      int status = 0;
      Result<std::string> body = co_await body_of(exchange, request, status);
      running.exchange = nullptr;
      // A worker may close an idle connection at any time. The next attempt uses a new one.
      if (exchange.kept_connection_closed()) continue;
      if (running.is_given_up) break;
      const bool refused = exchange.connection_refused();
      co_return EngineAnswer{std::move(body), status, refused};
    }
    co_return EngineAnswer{no_answer_in_time()};
  }

  // Returns the body of a 200, else the error that the status means.
  Task<Result<std::string>> body_of(http::Exchange& exchange, const http::Call& request,
                                    int& status) {
    auto begun = co_await exchange.start(request);
    if (!begun.ok()) co_return reason_of(exchange, std::move(begun).error());
    status = exchange.status();
    // The body is read in any case, because the connection can be kept only then.
    auto body = co_await http::read_all(exchange, options.answer_bytes_max);
    if (status != 200) {
      co_return worker_error(code_of(status),
                             request.head.target + " answers " + std::to_string(status), false);
    }
    if (!body.ok()) co_return reason_of(exchange, std::move(body).error());
    co_return body;
  }

  // On the I/O thread. A cancelled call may end its coroutine immediately and leave `calls`, so
  // this iterates over a copy.
  void give_up_all() {
    const std::vector<Running*> all(calls.begin(), calls.end());
    for (Running* running : all) running->give_up();
  }
};

WorkerClient::WorkerClient(const Options& options) : state_(std::make_unique<State>(options)) {}

WorkerClient::~WorkerClient() { stop(); }

void WorkerClient::start_probe(const EngineAddress& server, AskVersion ask_version,
                               std::function<void(Probe)> done) {
  const auto parts = std::make_shared<ProbeParts>();
  parts->done = std::move(done);
  const family::Family* const family = &server.family;
  const family::Questions paths = family->questions();
  const auto get = [&](std::string_view path, std::function<void(EngineAnswer)> answered) {
    state_->get({server.address, std::string(path), server.api_key}, std::move(answered));
  };
  if (ask_version == AskVersion::Yes) {
    ++parts->missing;
    get(paths.version, [parts, family](EngineAnswer answer) {
      auto& body = answer.body;
      parts->probe.version = body.ok() ? family->parse_version(std::move(*body)) : body.error();
      parts->put();
    });
  }
  get("/health", [parts](const EngineAnswer& answer) { parts->put_health(answer); });
  get("/v1/models", [parts](EngineAnswer answer) {
    auto& body = answer.body;
    parts->probe.models = body.ok() ? family::parse_models(std::move(*body)) : body.error();
    parts->put();
  });
  get(paths.sources, [parts, family](EngineAnswer answer) {
    auto& body = answer.body;
    parts->probe.sources = body.ok() ? family->parse_sources(std::move(*body)) : body.error();
    parts->put();
  });
  get(paths.load, [parts, family](EngineAnswer answer) {
    auto& body = answer.body;
    parts->probe.load = body.ok() ? family->parse_load(std::move(*body)) : body.error();
    parts->put();
  });
}

void WorkerClient::start_load(const EngineAddress& server,
                              std::function<void(Result<ServerLoad>)> done) {
  const family::Family* const family = &server.family;
  state_->get({server.address, std::string(family->questions().load), server.api_key},
              [family, done = std::move(done)](EngineAnswer answer) {
                auto& body = answer.body;
                done(body.ok() ? family->parse_load(std::move(*body)) : body.error());
              });
}

void WorkerClient::start_sleep(const EngineAddress& server,
                               std::function<void(Result<bool>)> done) {
  const std::string path(server.family.questions().sleep);
  state_->get({server.address, path, server.api_key},
              [path, done = std::move(done)](EngineAnswer answer) {
                auto& body = answer.body;
                done(body.ok() ? family::parse_sleep(std::move(*body), path) : body.error());
              });
}

void WorkerClient::stop() {
  if (!state_->pool.running()) return;
  asio::post(state_->pool.context(0), [state = state_.get()] { state->give_up_all(); });
  {
    const MutexLock lock(state_->mutex);
    // No callback may run after stop(), so it waits for all of them.
    state_->idle.wait(state_->mutex,
                      [this]() SL_REQUIRES(state_->mutex) { return state_->unfinished == 0; });
  }
  state_->pool.stop();
}

}  // namespace sightline::fleet
