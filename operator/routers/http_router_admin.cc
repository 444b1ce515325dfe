// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/routers/http_router_admin.h"

#include <algorithm>
#include <utility>

namespace sightline::routers {
namespace {

using object::Value;
using rest::HttpAnswer;
using rest::HttpRequest;

constexpr int kOk = 200;

Error unavailable(const HttpRequest& request, const std::string& why) {
  return worker_error(ErrorCode::Unavailable, request.method + " " + request.target + ": " + why,
                      true);
}

// The message of the admin port's error answer.
std::string refusal_of(const HttpAnswer& answer) {
  const auto body = Value::parse(answer.body);
  const std::string said =
      body.ok() ? std::string(body->at({"error", "message"}).text()) : std::string();
  return "status " + std::to_string(answer.status) + (said.empty() ? "" : ", " + said);
}

Result<HttpAnswer> send(rest::Transport& transport, const HttpRequest& request, Duration time_max) {
  auto answer = transport.exchange(request, std::max(time_max, Duration::zero()));
  if (!answer.ok()) return unavailable(request, answer.error().message);
  if (answer->status != kOk) return unavailable(request, refusal_of(*answer));
  return std::move(*answer);
}

Result<Value> get(rest::Transport& transport, const std::string& path, Duration time_max) {
  HttpRequest request;
  request.method = "GET";
  request.target = path;
  HttpAnswer answer = SL_TRY(send(transport, request, time_max));
  auto body = Value::parse(std::move(answer.body), {.values_max = kAnswerValuesMax});
  if (!body.ok()) return unavailable(request, "its answer is not JSON: " + body.error().message);
  return std::move(*body);
}

}  // namespace

std::string HttpRouterAdmin::server_of(const Address& router) const {
  const bool is_six = router.host.find(':') != std::string::npos;
  const std::string host = is_six ? "[" + router.host + "]" : router.host;
  return "http://" + host + ":" + std::to_string(options_.port);
}

Result<judge::RouterAnswers> HttpRouterAdmin::ask(const Address& router) {
  const auto transport = options_.connect(server_of(router));
  // kCallMax is the limit of all four reads together.
  const Instant until = clock_.now() + kCallMax;
  const auto read = [&](const std::string& path) {
    return get(*transport, path, until - clock_.now());
  };
  judge::RouterAnswers answers;
  answers.workers = SL_TRY(read("/v1/workers"));
  answers.list = SL_TRY(read("/v1/workers/list"));
  answers.settings = SL_TRY(read("/v1/settings"));
  answers.replicas = SL_TRY(read("/v1/replicas"));
  return answers;
}

Result<std::map<std::string, std::string>> HttpRouterAdmin::settings(const Address& process) {
  const auto transport = options_.connect(server_of(process));
  return judge::pushed_settings(SL_TRY(get(*transport, "/v1/settings", kCallMax)));
}

Result<Done> HttpRouterAdmin::put(const Address& router, const std::string& path,
                                  const Value& body) {
  const auto transport = options_.connect(server_of(router));
  HttpRequest request;
  request.method = "PUT";
  request.target = path;
  request.content_type = "application/json";
  request.headers.emplace_back("Authorization", "Bearer " + router.token);
  request.body = body.to_text();
  if (!options_.may_write()) {
    return unavailable(request, "this process is not the leader: nothing was sent");
  }
  SL_TRY(send(*transport, request, kCallMax));
  return Done{};
}

}  // namespace sightline::routers
