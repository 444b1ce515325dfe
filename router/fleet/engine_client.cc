// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/fleet/engine_client.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <cpprest/http_client.h>

#include "common/runtime/admin_server.h"

namespace sightline::fleet {
namespace {

namespace http = web::http;

constexpr std::size_t kReadBytes = 16 << 10;

struct Answer {
  int status = 0;
  std::string body;
};

// One call. Whoever finishes first, answer or deadline, the library's continuation calls back.
struct Call {
  std::function<void(Result<Answer>)> done;
  pplx::cancellation_token_source cancel;
  Instant deadline;
  std::size_t answer_bytes_max = 0;
  Answer answer;
  concurrency::streams::streambuf<std::uint8_t> source;
  std::array<std::uint8_t, kReadBytes> piece{};
  std::optional<Error> failure;  // known before the library tells of its own
};

Error unavailable(std::string message) {
  return worker_error(ErrorCode::Unavailable, std::move(message), true);
}

// The library reports a refused connection as an unreachable host.
bool is_refused(const std::error_code& code) {
  return code == std::errc::host_unreachable || code == std::errc::connection_refused;
}

Error error_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const http::http_exception& known) {
    if (is_refused(known.error_code())) return unavailable("connection refused");
    if (known.error_code() == std::errc::timed_out ||
        known.error_code() == std::errc::operation_canceled) {
      return worker_error(ErrorCode::Timeout, "no answer in time", true);
    }
    return unavailable("connection broke off");
  } catch (const pplx::task_canceled&) {
    return worker_error(ErrorCode::Timeout, "no answer in time", true);
  } catch (const std::exception&) {
    return unavailable("connection broke off");
  }
}

// The body of a 200, else what the status means here.
Result<std::string> body_of(Result<Answer> answer, const std::string& path) {
  if (!answer.ok()) return std::move(answer).error();
  if (answer->status == 200) return std::move(answer->body);
  const ErrorCode code = answer->status == 404 ? ErrorCode::NotFound : ErrorCode::Unavailable;
  return worker_error(code, path + " answers " + std::to_string(answer->status), false);
}

// The parts of a probe as they come in, in any order.
struct ProbeParts {
  static constexpr int kParts = 4;

  std::mutex mutex;  // guards probe and missing
  Probe probe;
  int missing = kParts;
  std::function<void(Probe)> done;

  void put(const std::function<void(Probe&)>& store) {
    {
      const std::lock_guard lock(mutex);
      store(probe);
      if (--missing > 0) return;
    }
    // A server without /health is taken for healthy when it tells its models.
    if (!probe.health.ok() && probe.health.error().code == ErrorCode::NotFound &&
        probe.models.ok()) {
      probe.health = Done{};
    }
    done(std::move(probe));
  }
};

}  // namespace

struct EngineClient::State : std::enable_shared_from_this<EngineClient::State> {
  State(Options client_options, const Clock& client_clock)
      : options(client_options), clock(client_clock) {}

  const Options options;
  const Clock& clock;

  std::mutex mutex;  // guards everything below
  std::condition_variable idle;
  std::unordered_set<std::shared_ptr<Call>> calls;
  bool is_stopped = false;

  void finish(const std::shared_ptr<Call>& call, Result<Answer> answer) {
    // The deadline and the limits know better than the library why a call was cancelled.
    if (call->failure) answer = *call->failure;
    call->done(std::move(answer));
    {
      const std::lock_guard lock(mutex);
      calls.erase(call);
    }
    idle.notify_all();
  }

  std::shared_ptr<Call> begin(std::function<void(Result<Answer>)> done) {
    auto call = std::make_shared<Call>();
    call->done = std::move(done);
    call->deadline = clock.now() + options.timeout;
    call->answer_bytes_max = options.answer_bytes_max;
    const std::lock_guard lock(mutex);
    calls.insert(call);
    if (is_stopped) call->cancel.cancel();
    return call;
  }

  void get(const std::string& url, const std::string& path,
           std::function<void(Result<Answer>)> done) {
    const auto call = begin(std::move(done));
    const auto self = shared_from_this();
    try {
      http::client::http_client_config config;
      config.set_timeout(options.timeout);
      config.set_max_redirects(0);
      http::client::http_client client(url, config);
      auto answered = client.request(http::methods::GET, path, call->cancel.get_token());
      answered.then([self, call](const pplx::task<http::http_response>& response) {
        self->receive(call, response);
      });
    } catch (const std::exception&) {
      finish(call, error_of(std::current_exception()));
    }
  }

  void receive(const std::shared_ptr<Call>& call, const pplx::task<http::http_response>& response) {
    try {
      const http::http_response& head = response.get();
      call->answer.status = head.status_code();
      call->source = head.body().streambuf();
    } catch (const std::exception&) {
      finish(call, error_of(std::current_exception()));
      return;
    }
    read_on(call);
  }

  // Piece by piece, so that an answer without end can be given up.
  void read_on(const std::shared_ptr<Call>& call) {
    const auto self = shared_from_this();
    auto piece = call->source.getn(call->piece.data(), call->piece.size());
    piece.then([self, call](const pplx::task<std::size_t>& read) {
      std::size_t count = 0;
      try {
        count = read.get();
      } catch (const std::exception&) {
        self->finish(call, error_of(std::current_exception()));
        return;
      }
      if (count == 0) {
        self->finish(call, std::move(call->answer));
        return;
      }
      if (call->answer.body.size() + count > call->answer_bytes_max) {
        call->failure = worker_error(ErrorCode::TooLarge, "the answer is too long", false);
        call->cancel.cancel();
        self->finish(call, *call->failure);
        return;
      }
      call->answer.body.append(reinterpret_cast<const char*>(call->piece.data()), count);
      self->read_on(call);
    });
  }
};

EngineClient::EngineClient(Options options, const Clock& clock) {
  runtime::fix_cpprest_threads();
  state_ = std::make_shared<State>(options, clock);
}

EngineClient::~EngineClient() { stop(); }

void EngineClient::start_probe(const std::string& url, std::function<void(Probe)> done) {
  const auto parts = std::make_shared<ProbeParts>();
  parts->done = std::move(done);
  state_->get(url, "/health", [parts](const Result<Answer>& answer) {
    const Result<std::string> body = body_of(answer, "/health");
    parts->put([&body](Probe& probe) {
      if (body.ok()) return;
      probe.health = body.error();
      probe.refused = body.error().message == "connection refused";
    });
  });
  state_->get(url, "/v1/models", [parts](const Result<Answer>& answer) {
    Result<std::string> body = body_of(answer, "/v1/models");
    auto models = body.ok() ? parse_models(std::move(*body)) : body.error();
    parts->put([&models](Probe& probe) { probe.models = std::move(models); });
  });
  state_->get(url, "/kv_event_sources", [parts](const Result<Answer>& answer) {
    Result<std::string> body = body_of(answer, "/kv_event_sources");
    auto sources = body.ok() ? parse_event_sources(std::move(*body)) : body.error();
    parts->put([&sources](Probe& probe) { probe.sources = std::move(sources); });
  });
  state_->get(url, "/metrics", [parts](const Result<Answer>& answer) {
    const Result<std::string> body = body_of(answer, "/metrics");
    auto load = body.ok() ? parse_metrics(*body) : body.error();
    parts->put([&load](Probe& probe) { probe.load = std::move(load); });
  });
}

void EngineClient::start_load(const std::string& url,
                              std::function<void(Result<EngineLoad>)> done) {
  state_->get(url, "/metrics", [done = std::move(done)](const Result<Answer>& answer) {
    const Result<std::string> body = body_of(answer, "/metrics");
    done(body.ok() ? parse_metrics(*body) : body.error());
  });
}

Instant EngineClient::cancel_overdue() {
  const Instant now = state_->clock.now();
  Instant next = Instant::max();
  std::vector<std::shared_ptr<Call>> overdue;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& call : state_->calls) {
      if (call->deadline <= now) {
        overdue.push_back(call);
      } else {
        next = std::min(next, call->deadline);
      }
    }
  }
  for (const auto& call : overdue) call->cancel.cancel();
  return next;
}

void EngineClient::stop() {
  std::unordered_set<std::shared_ptr<Call>> running;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_stopped = true;
    running = state_->calls;
  }
  for (const auto& call : running) call->cancel.cancel();
  std::unique_lock lock(state_->mutex);
  state_->idle.wait(lock, [this] { return state_->calls.empty(); });
}

}  // namespace sightline::fleet
