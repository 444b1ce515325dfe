// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/proxy/client_api.h"

#include <new>
#include <optional>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/out_of_memory.h"
#include "common/base/printable.h"
#include "common/base/rng.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/names.h"

#include "router/front/proxy/cors.h"
#include "router/openai/api_target.h"
#include "router/openai/error_body.h"
#include "router/openai/passed_paths.h"

namespace sightline::proxy {
namespace {

// Longer request ids of clients are replaced. The limit is in bytes.
constexpr std::size_t kRequestIdBytesMax = 256;

http::Response json_response(int status, std::string body) {
  return {
      .status = status, .headers = {{"content-type", "application/json"}}, .body = std::move(body)};
}

http::Response error_response(const Error& error, int status) {
  http::Response response = json_response(status, openai::error_body(error, status));
  // The overload will end. The header says when clients may retry (RFC 9110 section 10.2.3).
  if (response.status == 503) response.headers.set("retry-after", "1");
  return response;
}

http::Response error_response(const Error& error) {
  return error_response(error, openai::http_status_of(error));
}

bool is_generating(std::string_view path) {
  return path == "/v1/chat/completions" || path == "/v1/completions";
}

// Paths that the router answers without a worker.
bool is_own(std::string_view path) {
  return path == "/v1/models" || path == "/health" || path == "/version";
}

// The methods of these paths.
constexpr std::string_view kReads = "GET, HEAD";

// Labels of metrics.
constexpr std::string_view kModelsRoute = "/v1/models";
constexpr std::string_view kOtherRoute = "other";

std::string_view route_of(openai::Endpoint endpoint) {
  return endpoint == openai::Endpoint::Chat ? "chat_completions" : "completions";
}
openai::Endpoint endpoint_of(std::string_view path) {
  return path == "/v1/completions" ? openai::Endpoint::Completions : openai::Endpoint::Chat;
}

// Returns the methods that a path accepts. The text is empty for an unknown path.
std::string_view methods_of(std::string_view path, const std::vector<std::string>& passed) {
  if (is_generating(path)) return "POST";
  return is_own(path) ? kReads : openai::passed_methods(path, passed);
}

http::Response no_such_path(std::string_view path) {
  return error_response(client_error(
      ErrorCode::NotFound,
      openai::is_like_generating(path)
          ? "no such path. Send each request to /v1/chat/completions or /v1/completions: "
            "batches and other variants are not supported"
          : "no such path. The API is under /v1, see /v1/models. Other paths of engines must be "
            "listed in server.passed_paths"));
}

// Returns the answer to a method that a path does not accept. The path must accept others.
http::Response other_method(std::string_view methods, std::string_view method) {
  http::Response response{.status = 204, .headers = {}, .body = {}};
  if (method != "OPTIONS") {
    response = error_response(client_error(ErrorCode::MethodNotAllowed,
                                           "this path accepts only " + std::string(methods)));
  }
  response.headers.set("allow", std::string(methods) + ", OPTIONS");
  return response;
}

// Adds the facts besides the error to its answer.
void add_advice(http::Response& response, const Advice& advice) {
  if (advice.retry_after_s) {
    response.headers.set("retry-after", std::to_string(*advice.retry_after_s));
  }
  if (advice.is_useless_again) response.headers.set(contract::kShouldRetryHeader, "false");
  if (!advice.body.empty()) response.body = advice.body;
}

// Turns a lack of memory into an error. No other exception exists here.
Task<Result<Done>> contained(Task<Result<Done>> life) {
  std::optional<Result<Done>> ended;
  try {
    auto result = co_await std::move(life);
    ended.emplace(std::move(result));
  } catch (const std::bad_alloc&) {
    ended.reset();
  }
  if (!ended) co_return out_of_memory();
  co_return std::move(*ended);
}

struct ModelEntry {
  std::string_view id;
  std::string_view root;
  // Empty for a base model.
  std::string_view parent;
  std::uint32_t max_model_len = 0;
};

void append_model(std::string& out, const ModelEntry& model, std::int64_t created) {
  if (!out.empty()) out += ',';
  out += R"({"id":)" + json::to_quoted(model.id) + R"(,"object":"model","created":)" +
         std::to_string(created) + R"(,"owned_by":"sightline","root":)" +
         json::to_quoted(model.root) + R"(,"parent":)" +
         (model.parent.empty() ? "null" : json::to_quoted(model.parent)) + R"(,"max_model_len":)" +
         (model.max_model_len == 0 ? "null" : std::to_string(model.max_model_len)) + "}";
}

}  // namespace

ClientApi::ClientApi(const Deps& services, Proxy& proxy, http::Client& to_workers)
    : services_(services),
      proxy_(proxy),
      to_workers_(to_workers),
      adapters_(
          {services.settings, services.served, services.selector, services.metrics, to_workers}),
      started_s_(
          std::chrono::duration_cast<std::chrono::seconds>(services.clock.wall().time_since_epoch())
              .count()),
      id_seed_(static_cast<std::uint64_t>(services.clock.wall().time_since_epoch().count())) {}

http::Admission ClientApi::admission(const http::Request& head) {
  // A preflight is answered even when the router is full.
  if (is_preflight(head)) return {};
  if (openai::model_of(head.target)) {
    if (openai::has_method(kReads, head.method)) return {};
    return {.refusal = finished(kModelsRoute, head, other_method(kReads, head.method))};
  }
  const auto target = openai::read_target(head.target);
  if (!target.ok()) return {.refusal = finished(kOtherRoute, head, error_response(target.error()))};
  const std::string& path = target->path;
  const auto settings = services_.settings.read();
  const std::string_view methods = methods_of(path, settings->server.passed_paths);
  const std::string_view route = is_own(path) ? std::string_view(path) : kOtherRoute;
  if (methods.empty()) return {.refusal = finished(route, head, no_such_path(path))};
  if (!openai::has_method(methods, head.method)) {
    return {.refusal = finished(route, head, other_method(methods, head.method))};
  }
  if (is_own(path)) return {};
  // The request itself is not counted yet.
  const auto admitted = admit(proxy_.budget().live() + 1);
  if (admitted.ok()) return {};
  const auto counted = is_generating(path) ? route_of(endpoint_of(path)) : kOtherRoute;
  return {.refusal = too_many(admitted.error(), counted, head)};
}

Task<void> ClientApi::handle(http::Request& http, http::ResponseWriter& client) {
  if (is_preflight(http)) {
    auto preflight = preflight_answer(http, services_.settings.read()->server.cors_origins);
    co_await answer(kOtherRoute, http, std::move(preflight), client);
    co_return;
  }
  if (const auto model = openai::model_of(http.target)) {
    auto response = model_response(*model);
    co_await answer(kModelsRoute, http, std::move(response), client);
    co_return;
  }
  auto target = openai::read_target(http.target);
  // admission() has rejected it.
  if (!target.ok()) co_return;
  const std::string path = std::move(target->path);
  // From here on the path has its normal form. No later reader can see another path.
  http.target = path + target->query;
  if (is_own(path)) {
    auto response = own_content(path);
    co_await answer(path, http, std::move(response), client);
  } else if (is_generating(path)) {
    co_await generate(endpoint_of(path), http, client);
  } else if (http.method == "POST" && adapters::changes_adapters(path)) {
    co_await change_adapter(http, client);
  } else {
    co_await pass(http, client);
  }
}

http::Response ClientApi::own_content(std::string_view path) const {
  if (path == "/v1/models") return json_response(200, models_body());
  if (path == "/version") return json_response(200, R"({"version":")" SL_VERSION R"("})");
  return {};
}

http::Response ClientApi::model_response(std::string_view name) const {
  std::string entry = model_entries(name);
  if (entry.empty()) return error_response(openai::no_such_model(name));
  return json_response(200, std::move(entry));
}

void ClientApi::name_request(http::Response& response, const std::string& request_id) const {
  response.headers.set(contract::kRequestIdHeader, request_id);
  if (response.status < 400) return;
  log(LogLevel::Info, "refused a request",
      {{"request_id", request_id}, {"status", response.status}});
}

http::Response ClientApi::finished(std::string_view route, const http::Request& http,
                                   http::Response response) {
  name_request(response, request_id_of(http));
  allow_origin(response.headers, services_.settings.read()->server.cors_origins,
               http.headers.find("origin"));
  const std::string status = std::to_string(response.status);
  services_.metrics.counter(contract::kRequestsTotal, {route, status}).add();
  return response;
}

Task<void> ClientApi::answer(std::string_view route, const http::Request& http,
                             http::Response response, http::ResponseWriter& client) {
  auto whole = finished(route, http, std::move(response));
  auto sent = co_await client.send(std::move(whole));
  // A client that left before this small answer has lost nothing.
  static_cast<void>(sent);
}

Task<void> ClientApi::generate(openai::Endpoint endpoint, http::Request& http,
                               http::ResponseWriter& client) {
  const retry::RetryBudget::Live active(proxy_.budget());
  RequestTrace trace(services_, route_of(endpoint), request_id_of(http));
  auto result = admit(active.number());
  relay::HttpRelay relay(to_workers_, client);
  auto life = proxy_.serve(endpoint, http, relay, trace);
  if (result.ok()) result = co_await contained(std::move(life));
  co_await conclude(std::move(result), http, trace, client);
}

Task<void> ClientApi::pass(http::Request& http, http::ResponseWriter& client) {
  const retry::RetryBudget::Live active(proxy_.budget());
  RequestTrace trace(services_, kOtherRoute, request_id_of(http));
  auto result = admit(active.number());
  relay::HttpRelay relay(to_workers_, client);
  auto life = proxy_.serve_unread(http, relay, trace);
  if (result.ok()) result = co_await contained(std::move(life));
  co_await conclude(std::move(result), http, trace, client);
}

Task<void> ClientApi::change_adapter(const http::Request& http, http::ResponseWriter& client) {
  const retry::RetryBudget::Live active(proxy_.budget());
  RequestTrace trace(services_, kOtherRoute, request_id_of(http));
  Result<Done> result = admit(active.number());
  http::Response response;
  if (result.ok()) {
    auto answer = co_await adapters_.change(http, trace.request_id());
    if (answer.ok()) {
      response = std::move(*answer);
    } else {
      result = std::move(answer).error();
    }
  }
  if (!result.ok()) {
    co_await conclude(std::move(result), http, trace, client);
    co_return;
  }
  trace.answered(response.status, std::nullopt);
  response.headers.set(contract::kRequestIdHeader, trace.request_id());
  allow_origin(response.headers, services_.settings.read()->server.cors_origins,
               http.headers.find("origin"));
  auto sent = co_await client.send(std::move(response));
  // The change is made, even if no client reads the answer.
  static_cast<void>(sent);
}

Result<Done> ClientApi::admit(std::size_t requests) const {
  if (requests <= services_.settings.read()->server.concurrent_requests_max) return Done{};
  return overload_error("concurrent-requests-max", "too many requests at the same time");
}

Task<void> ClientApi::conclude(Result<Done> result, const http::Request& http, RequestTrace& trace,
                               http::ResponseWriter& client) {
  if (result.ok()) co_return;
  Error error = std::move(result).error();
  // A cut-off by the router looks like a client that left. The client must learn that the router
  // stops.
  const bool is_cut_off = error.code == ErrorCode::Cancelled && client.cut_off();
  if (is_cut_off && !client.disconnected()) {
    error = http::stopping_error("the answer was complete");
  }
  http::Response response = error_response(error);
  if (error.code != ErrorCode::Cancelled && !is_cut_off) add_advice(response, trace.advice());
  trace.failed(response.status, error);
  if (client.started() || client.disconnected()) co_return;
  response.headers.set(contract::kRequestIdHeader, trace.request_id());
  allow_origin(response.headers, services_.settings.read()->server.cors_origins,
               http.headers.find("origin"));
  auto sent = co_await client.send(std::move(response));
  // The error is already recorded.
  static_cast<void>(sent);
}

http::Response ClientApi::too_many(const Error& error, std::string_view route,
                                   const http::Request& http) {
  RequestTrace trace(services_, route, request_id_of(http));
  http::Response response = error_response(error);
  trace.failed(response.status, error);
  response.headers.set(contract::kRequestIdHeader, trace.request_id());
  allow_origin(response.headers, services_.settings.read()->server.cors_origins,
               http.headers.find("origin"));
  return response;
}

http::Response ClientApi::refusal(int status, const Error& error) {
  if (!error.limit.empty()) {
    services_.metrics.counter(contract::kLimitHitsTotal, {error.limit}).add();
  }
  services_.metrics.counter(contract::kRequestsTotal, {"refused", std::to_string(status)}).add();
  http::Response response = error_response(error, status);
  name_request(response, new_request_id());
  // The origin of the request is not known here.
  allow_origin(response.headers, services_.settings.read()->server.cors_origins, "");
  return response;
}

std::string ClientApi::models_body() const {
  return R"({"object":"list","data":[)" + model_entries({}) + "]}";
}

std::string ClientApi::model_entries(std::optional<std::string_view> only) const {
  const auto served = services_.served();
  const auto settings = services_.settings.read();
  const auto& names = settings->model.served_names;
  std::uint32_t longest = settings->model.max_model_len;
  const std::uint32_t tokens = served->prompt_tokens_max;
  // The list must not name a length that no worker takes.
  if (tokens > 0 && (longest == 0 || tokens < longest)) longest = tokens;
  if (longest == 0) longest = services_.model->profile.tokens_max.value_or(0);
  std::string entries;
  const auto add = [&](const ModelEntry& model) {
    if (!only || model.id == *only) append_model(entries, model, started_s_);
  };
  for (const std::string& name : names) {
    // Every served name refers to the first one.
    add({.id = name, .root = names.front(), .parent = {}, .max_model_len = longest});
  }
  for (const fleet::ServedNames::Model& model : served->models.all()) {
    // With names of its own, the router lists only the adapters of workers.
    if (!names.empty() && model.parent.empty()) continue;
    if (std::find(names.begin(), names.end(), model.id) != names.end()) continue;
    add({model.id, model.id, model.parent, longest});
  }
  return entries;
}

std::string ClientApi::request_id_of(const http::Request& http) {
  const auto given = http.headers.find(contract::kRequestIdHeader);
  const bool is_kept = given && !given->empty() && given->size() <= kRequestIdBytesMax;
  // A header of the client goes to logs and workers. Only printable text is accepted.
  if (is_kept && is_printable(*given)) return std::string(*given);
  return new_request_id();
}

std::string ClientApi::new_request_id() {
  const std::uint64_t turn = id_turn_.fetch_add(1, std::memory_order_relaxed);
  Rng rng(id_seed_ + turn);
  return "req-" + to_hex(rng.next()) + to_hex(rng.next());
}

}  // namespace sightline::proxy
