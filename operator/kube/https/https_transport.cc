// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/https/https_transport.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include <boost/asio/ssl.hpp>
#include <cpprest/http_client.h>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/number.h"

#include "operator/kube/https/body.h"
#include "operator/kube/https/cpprest_threads.h"
#include "operator/kube/https/sink.h"

namespace sightline::https {

using client::Answer;
using client::Failure;
using client::Reason;
using rest::HttpAnswer;
using rest::HttpRequest;

namespace {

namespace http = web::http;
using http::client::http_client;
using http::client::http_client_config;

// Longer than any call and any silence of a watch, so our own deadlines come first.
constexpr std::chrono::minutes kSilenceMax{11};
// How long a cancelled request may take to report its end.
constexpr std::chrono::seconds kCancelTime{5};
// A longer wait would look like a hang of this operator.
constexpr std::uint32_t kRetryAfterMax = 600;

Failure failure(Reason reason, std::string message) {
  Failure made;
  made.reason = reason;
  made.message = std::move(message);
  return made;
}

// The failure that the library reports. Without a connection nothing was sent.
Failure failure_of(const std::exception& error) {
  const std::string what = error.what();
  const auto says = [&](std::string_view text) { return what.find(text) != std::string::npos; };
  Failure made = failure(Reason::Unreachable, what);
  const auto* http_error = dynamic_cast<const http::http_exception*>(&error);
  // The library has no codes for these failures, only texts.
  const bool is_connect = says("Failed to connect");
  if (is_connect && http_error != nullptr &&
      (http_error->error_code().value() == EHOSTUNREACH ||
       http_error->error_code().value() == ECONNREFUSED)) {
    made.reason = Reason::ConnectionRefused;
  }
  // After a handshake the server may have the request.
  made.is_outcome_unknown = !is_connect && !says("resolving") && !says("handshake");
  return made;
}

std::optional<Duration> retry_after_of(const http::http_response& response) {
  const auto header = response.headers().find("Retry-After");
  if (header == response.headers().end()) return std::nullopt;
  const auto seconds = whole_number(header->second);
  if (!seconds) return std::nullopt;
  return std::chrono::seconds(std::min(*seconds, kRetryAfterMax));
}

// The library also offers old protocols, which are broken.
void set_up(boost::asio::ssl::context& context, const config::TlsMaterial& tls) {
  context.set_options(boost::asio::ssl::context::default_workarounds |
                      boost::asio::ssl::context::no_sslv2 | boost::asio::ssl::context::no_sslv3 |
                      boost::asio::ssl::context::no_tlsv1 | boost::asio::ssl::context::no_tlsv1_1);
  if (tls.authority.empty()) {
    context.set_default_verify_paths();
  } else {
    context.add_certificate_authority(
        boost::asio::buffer(tls.authority.data(), tls.authority.size()));
  }
  if (tls.certificate.empty()) return;
  context.use_certificate_chain(
      boost::asio::buffer(tls.certificate.data(), tls.certificate.size()));
  context.use_private_key(boost::asio::buffer(tls.key.data(), tls.key.size()),
                          boost::asio::ssl::context::pem);
}

// Why no connection can be made with these. Empty: they are usable.
std::string problem_of(const config::TlsMaterial& tls) {
  try {
    boost::asio::ssl::context context(boost::asio::ssl::context::sslv23);
    set_up(context, tls);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// An active request.
struct RequestState {
  explicit RequestState(std::size_t bytes_max) : body(std::make_shared<Body>(bytes_max)) {}

  const std::shared_ptr<Body> body;
  pplx::cancellation_token_source cancel;
  Mutex mutex;
  CondVar changed;
  std::optional<HttpAnswer> head SL_GUARDED_BY(mutex);
  std::optional<Failure> failed SL_GUARDED_BY(mutex);  // before the head

  void set_head(const http::http_response& response) {
    {
      const MutexLock lock(mutex);
      head = HttpAnswer{response.status_code(), {}, retry_after_of(response)};
    }
    changed.notify_all();
  }
  void fail(const Failure& failure) {
    {
      const MutexLock lock(mutex);
      failed = failure;
    }
    // The reader must not wait for a body that never comes.
    body->finish(failure);
    changed.notify_all();
  }
  // The head, or why it will not come. Nothing: neither arrived within time_max.
  std::optional<Answer<HttpAnswer>> wait_for_head(Duration time_max) {
    const MutexLock lock(mutex);
    changed.wait_for(mutex, time_max, [this]() SL_REQUIRES(mutex) { return head || failed; });
    if (head) return Answer<HttpAnswer>(*head);
    if (failed) return Answer<HttpAnswer>(*failed);
    return std::nullopt;
  }
};

class HttpsStream : public rest::Stream {
 public:
  HttpsStream(std::shared_ptr<RequestState> exchange, std::shared_ptr<http_client> client,
              const std::stop_token& stop)
      : exchange_(std::move(exchange)),
        client_(std::move(client)),
        on_stop_(stop, [this] { HttpsStream::cancel(); }) {}
  ~HttpsStream() override { HttpsStream::cancel(); }

  Answer<Piece> read(Duration time_max) override {
    Body::BodyPiece piece = exchange_->body->take(time_max);
    if (piece.failure) return std::move(*piece.failure);
    return Piece{std::move(piece.bytes), piece.is_end};
  }
  // The reader sees the end after the bytes.
  void cancel() override {
    exchange_->body->finish({});
    exchange_->cancel.cancel();
  }

 private:
  const std::shared_ptr<RequestState> exchange_;
  const std::shared_ptr<http_client> client_;
  const std::stop_callback<std::function<void()>> on_stop_;
};

}  // namespace

struct HttpsTransport::State {
  State(HttpsOptions transport_options, config::Credentials& its_credentials,
        const Clock& its_clock, std::stop_token its_stop)
      : options(std::move(transport_options)),
        credentials(its_credentials),
        clock(its_clock),
        stop(std::move(its_stop)) {}

  const HttpsOptions options;
  config::Credentials& credentials;
  const Clock& clock;
  const std::stop_token stop;

  Mutex mutex;
  std::shared_ptr<const config::TlsMaterial> asked SL_GUARDED_BY(mutex);   // asked for last
  std::shared_ptr<const config::TlsMaterial> in_use SL_GUARDED_BY(mutex);  // the last usable one
  std::shared_ptr<http_client> calls SL_GUARDED_BY(mutex);

  std::shared_ptr<http_client> make_client(std::shared_ptr<const config::TlsMaterial> tls) const {
    http_client_config config;
    config.set_timeout(std::chrono::duration_cast<utility::seconds>(kSilenceMax));
    // A redirect could send the credentials to another server.
    config.set_max_redirects(0);
    config.set_validate_certificates(!options.is_insecure);
    config.set_ssl_context_callback(
        [tls = std::move(tls)](boost::asio::ssl::context& context) { set_up(context, *tls); });
    return std::make_shared<http_client>(options.server, config);
  }

  // The shared client of calls, or a new client for a stream. Unusable material leaves the earlier
  // material in use, for example half of a pair during its replacement.
  Answer<std::shared_ptr<http_client>> client_for(
      const std::shared_ptr<const config::TlsMaterial>& tls, bool is_own) {
    const MutexLock lock(mutex);
    if (asked != tls) {
      asked = tls;
      const std::string problem = problem_of(*tls);
      if (problem.empty()) {
        in_use = tls;
        // Dropped, not closed: calls under way still use the old client.
        calls = nullptr;
      } else if (in_use == nullptr) {
        // Forgotten, so the next call tries the material again.
        asked = nullptr;
        return failure(Reason::Misconfigured, "TLS: " + problem);
      }
    }
    if (is_own) return make_client(in_use);
    if (calls == nullptr) calls = make_client(in_use);
    return calls;
  }

  http::http_request message_of(const HttpRequest& request, const config::Presented& presented,
                                const std::shared_ptr<Body>& body, bool is_stream) const {
    http::http_request message(request.method);
    message.set_request_uri(web::uri(request.target));
    if (!request.body.empty()) message.set_body(request.body, request.content_type);
    for (const auto& [name, value] : request.headers) message.headers().add(name, value);
    for (const auto& [name, value] : presented.headers) message.headers().add(name, value);
    // The library also checks the server's certificate against this name.
    if (!options.tls_server_name.empty()) message.headers().add("Host", options.tls_server_name);
    message.set_response_stream(sink_into(body, is_stream));
    return message;
  }

  // Sends the request. An immediate error of the library also arrives later.
  void start(const std::shared_ptr<http_client>& client, const http::http_request& message,
             const std::shared_ptr<RequestState>& exchange) const {
    client->request(message, exchange->cancel.get_token())
        .then([exchange](const http::http_response& response) {
          exchange->set_head(response);
          return response.content_ready();
        })
        .then([exchange, client](const pplx::task<http::http_response>& done) {
          try {
            done.get();
            exchange->body->finish({});
          } catch (const std::exception& error) {
            exchange->fail(failure_of(error));
          }
        });
  }

  // Reads credentials, makes client and message, and sends.
  Answer<std::shared_ptr<RequestState>> begin(const HttpRequest& request, bool is_stream,
                                              std::shared_ptr<http_client>& client) {
    if (stop.stop_requested()) return failure(Reason::Cancelled, "the process stops");
    auto presented = credentials.present();
    if (!presented.ok()) return failure(Reason::Misconfigured, presented.error().message);
    auto exchange = std::make_shared<RequestState>(is_stream ? options.stream_bytes_max
                                                             : options.body_bytes_max);
    try {
      client = SL_TRY(client_for(presented->tls, is_stream));
      start(client, message_of(request, *presented, exchange->body, is_stream), exchange);
    } catch (const std::exception& error) {
      return failure_of(error);
    }
    return exchange;
  }

  // Ends a request that did not complete. Its outcome is unknown, because the server may have it.
  Failure give_up(RequestState& exchange, Reason reason, std::string message) const {
    exchange.cancel.cancel();
    // The library may write into the body until it has reported the end.
    exchange.body->wait_for_end(kCancelTime);
    Failure made = failure(reason, std::move(message));
    made.is_outcome_unknown = true;
    return made;
  }

  // The whole answer, after its head has arrived or failed.
  Answer<HttpAnswer> finish(RequestState& exchange, Instant start, Duration time_max) {
    const auto left = [&] { return std::max(Duration::zero(), start + time_max - clock.now()); };
    auto head = exchange.wait_for_head(left());
    const bool is_ended = head && exchange.body->wait_for_end(left());
    if (stop.stop_requested()) return give_up(exchange, Reason::Cancelled, "the process stops");
    if (!is_ended) return give_up(exchange, Reason::Deadline, "no complete answer in time");
    HttpAnswer answer = SL_TRY(std::move(*head));
    if (exchange.body->is_over_full()) {
      return give_up(exchange, Reason::LimitExceeded, "the answer is too long");
    }
    Body::BodyPiece all = exchange.body->take_all();
    if (all.failure) return std::move(*all.failure);
    answer.body = std::move(all.bytes);
    // The credentials may be newer than the request, so its start decides.
    if (answer.status == 401) credentials.on_unauthorized(start);
    return answer;
  }
};

HttpsTransport::HttpsTransport(HttpsOptions options, config::Credentials& credentials,
                               const Clock& clock, std::stop_token stop)
    : state_(std::make_unique<State>(std::move(options), credentials, clock, std::move(stop))) {
  prepare_cpprest();
}

HttpsTransport::~HttpsTransport() = default;

Answer<HttpAnswer> HttpsTransport::exchange(const HttpRequest& request, Duration time_max) {
  const Instant start = state_->clock.now();
  std::shared_ptr<http_client> client;
  auto exchange = SL_TRY(state_->begin(request, false, client));
  const std::stop_callback on_stop(state_->stop, [&] { exchange->cancel.cancel(); });
  return state_->finish(*exchange, start, time_max);
}

Answer<rest::Transport::Opened> HttpsTransport::open(const HttpRequest& request,
                                                     Duration time_max) {
  const Instant start = state_->clock.now();
  std::shared_ptr<http_client> client;
  auto exchange = SL_TRY(state_->begin(request, true, client));
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
  on_stop.emplace(state_->stop, [&] { exchange->cancel.cancel(); });
  auto head = exchange->wait_for_head(time_max);
  const bool is_stream = head && head->ok() && (*head)->status == 200;
  if (!is_stream) {
    return Opened{SL_TRY(state_->finish(*exchange, start, time_max)), nullptr};
  }
  // The stream has a stop callback of its own.
  on_stop.reset();
  return Opened{std::move(**head),
                std::make_unique<HttpsStream>(exchange, std::move(client), state_->stop)};
}

}  // namespace sightline::https
