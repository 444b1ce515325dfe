// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/fleet/engine_client.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <asio/post.hpp>

#include "router/http/exchange.h"

namespace sightline::fleet {
namespace {

using http::Failure;

// What became of a call: the body of a 200, or why there is none.
struct Answer {
  Result<std::string> body;
  bool refused = false;  // nobody listens there
};

Error unavailable(std::string_view message) {
  return worker_error(ErrorCode::Unavailable, std::string(message), true);
}

Error no_answer_in_time() { return worker_error(ErrorCode::Timeout, "no answer in time", true); }

// Why an exchange failed, in words that stand behind a worker's name.
Error reason_of(const http::Exchange& exchange, Error error) {
  if (exchange.connection_refused()) return unavailable("connection refused");
  if (error.code == ErrorCode::Timeout) return no_answer_in_time();
  switch (exchange.failure()) {
    case Failure::Connect:
      return unavailable("the host is not known or not reachable");
    case Failure::NoAnswer:
    case Failure::BrokenOff:
      return unavailable("connection broke off");
    default:
      return error;
  }
}

// The parts of a probe as they come in, in any order.
struct ProbeParts {
  static constexpr int kParts = 4;

  Probe probe;
  int missing = kParts;
  std::function<void(Probe)> done;

  void put() {
    if (--missing > 0) return;
    // A server without /health is taken for healthy when it tells its models.
    if (!probe.health.ok() && probe.health.error().code == ErrorCode::NotFound &&
        probe.models.ok()) {
      probe.health = Done{};
    }
    done(std::move(probe));
  }
};

}  // namespace

struct EngineClient::State {
  explicit State(const Options& client_options) : options(client_options) {}

  // A call under way. Lives in its coroutine.
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
  http::Client client{pool, {.idle_per_endpoint_max = 1}};

  // Only the I/O thread. Calls are begun in their order, so at the stop all are in it.
  std::unordered_set<Running*> calls;

  std::mutex mutex;  // guards `unfinished`
  std::condition_variable idle;
  std::size_t unfinished = 0;  // calls begun and not called back

  void get(const http::Endpoint& engine, std::string path, std::function<void(Answer)> done) {
    {
      const std::lock_guard lock(mutex);
      ++unfinished;
    }
    spawn(pool.context(0).get_executor(), call(engine, std::move(path), std::move(done)));
  }

  Task<void> call(http::Endpoint engine, std::string path, std::function<void(Answer)> done) {
    Running running;
    calls.insert(&running);
    auto give_up = [&running] { running.give_up(); };
    Deadline deadline(pool.deadlines(0), give_up);
    deadline.set(options.timeout);
    Answer answer = co_await ask(engine, path, running);
    calls.erase(&running);
    done(std::move(answer));
    const std::lock_guard lock(mutex);
    --unfinished;
    idle.notify_all();
  }

  Task<Answer> ask(const http::Endpoint& engine, const std::string& path, Running& running) {
    const http::Call request{.endpoint = engine,
                             .head = {"GET", path, {}},
                             .body = {},
                             .timeouts = {.connect = options.timeout,
                                          .write = options.timeout,
                                          .first_byte = options.timeout,
                                          .between_bytes = options.timeout}};
    while (!running.is_given_up) {
      http::Exchange exchange(client);
      running.exchange = &exchange;
      Result<std::string> body = co_await body_of(exchange, request);
      running.exchange = nullptr;
      // An engine ends kept connections when it likes; the next one is new.
      if (exchange.kept_connection_closed()) continue;
      if (running.is_given_up) break;
      const bool refused = exchange.connection_refused();
      co_return Answer{std::move(body), refused};
    }
    co_return Answer{no_answer_in_time()};
  }

  // The body of a 200, else what the status means here.
  Task<Result<std::string>> body_of(http::Exchange& exchange, const http::Call& request) {
    auto begun = co_await exchange.start(request);
    if (!begun.ok()) co_return reason_of(exchange, std::move(begun).error());
    // Read in any case, so that the connection can be kept.
    auto body = co_await http::read_all(exchange, options.answer_bytes_max);
    if (exchange.status() != 200) {
      const ErrorCode code =
          exchange.status() == 404 ? ErrorCode::NotFound : ErrorCode::Unavailable;
      co_return worker_error(
          code, request.head.target + " answers " + std::to_string(exchange.status()), false);
    }
    if (!body.ok()) co_return reason_of(exchange, std::move(body).error());
    co_return body;
  }

  // On the I/O thread. Giving one up may end its coroutine at once, hence the copy.
  void give_up_all() {
    const std::vector<Running*> all(calls.begin(), calls.end());
    for (Running* running : all) running->give_up();
  }
};

EngineClient::EngineClient(const Options& options) : state_(std::make_unique<State>(options)) {}

EngineClient::~EngineClient() { stop(); }

void EngineClient::start_probe(const http::Endpoint& engine, std::function<void(Probe)> done) {
  const auto parts = std::make_shared<ProbeParts>();
  parts->done = std::move(done);
  state_->get(engine, "/health", [parts](const Answer& answer) {
    if (!answer.body.ok()) parts->probe.health = answer.body.error();
    parts->probe.refused = answer.refused;
    parts->put();
  });
  state_->get(engine, "/v1/models", [parts](Answer answer) {
    auto& body = answer.body;
    parts->probe.models = body.ok() ? parse_models(std::move(*body)) : body.error();
    parts->put();
  });
  state_->get(engine, "/kv_event_sources", [parts](Answer answer) {
    auto& body = answer.body;
    parts->probe.sources = body.ok() ? parse_event_sources(std::move(*body)) : body.error();
    parts->put();
  });
  state_->get(engine, "/metrics", [parts](const Answer& answer) {
    const auto& body = answer.body;
    parts->probe.load = body.ok() ? parse_metrics(*body) : body.error();
    parts->put();
  });
}

void EngineClient::start_load(const http::Endpoint& engine,
                              std::function<void(Result<EngineLoad>)> done) {
  state_->get(engine, "/metrics", [done = std::move(done)](const Answer& answer) {
    done(answer.body.ok() ? parse_metrics(*answer.body) : answer.body.error());
  });
}

void EngineClient::stop() {
  if (!state_->pool.running()) return;
  asio::post(state_->pool.context(0), [state = state_.get()] { state->give_up_all(); });
  {
    std::unique_lock lock(state_->mutex);
    state_->idle.wait(lock, [this] { return state_->unfinished == 0; });
  }
  state_->pool.stop();
}

}  // namespace sightline::fleet
