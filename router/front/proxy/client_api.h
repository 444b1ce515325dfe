// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/http/client.h"
#include "common/http/message.h"
#include "common/http/server.h"
#include "common/runtime/task.h"

#include "router/front/adapters/adapters.h"
#include "router/front/proxy/serve.h"

namespace sightline::proxy {

// The client port: the paths and their handlers, admission, and errors in OpenAI's shape. Thread
// safety: any I/O thread may call handle().
class ClientApi {
 public:
  // All arguments must live longer. `to_workers` is the client for requests to workers.
  ClientApi(const Deps& services, Proxy& proxy, http::Client& to_workers);

  // Answers requests from their header alone, if no body could change the answer. These are unknown
  // paths, methods that a path does not accept, and requests beyond server.concurrent_requests_max.
  // It reserves nothing: the limit is checked again when the body has arrived. Any I/O thread may
  // call it.
  http::Admission admission(const http::Request& head);

  // Answers one request that was admitted.
  Task<void> handle(http::Request& http, http::ResponseWriter& client);

  // Returns the answer to a request that the HTTP server itself rejects because of a limit or
  // broken framing.
  http::Response refusal(int status, const Error& error);

 private:
  // Returns an answer for which the router needs no worker.
  [[nodiscard]] http::Response own_content(std::string_view path) const;
  [[nodiscard]] http::Response model_response(std::string_view name) const;
  // Completes an answer of the router's own: adds the request id and counts it.
  http::Response finished(std::string_view route, const http::Request& http,
                          http::Response response);
  // Sends an answer of the router's own.
  Task<void> answer(std::string_view route, const http::Request& http, http::Response response,
                    http::ResponseWriter& client);
  // Serves a chat or completions request.
  Task<void> generate(openai::Endpoint endpoint, http::Request& http, http::ResponseWriter& client);
  // Serves a request on any other path of the workers.
  Task<void> pass(http::Request& http, http::ResponseWriter& client);
  Task<void> change_adapter(const http::Request& http, http::ResponseWriter& client);
  // Returns the error for one request too many. `requests` is the number of requests at the same
  // time.
  [[nodiscard]] Result<Done> admit(std::size_t requests) const;
  // Sends the error of a request that has no answer yet, and records its end.
  Task<void> conclude(Result<Done> result, const http::Request& http, RequestTrace& trace,
                      http::ResponseWriter& client);
  // Returns the answer to one request too many.
  http::Response too_many(const Error& error, std::string_view route, const http::Request& http);
  [[nodiscard]] std::string models_body() const;
  // Returns the served models as JSON, separated by commas. With `only`, it returns this model, or
  // "" if it is not served.
  [[nodiscard]] std::string model_entries(std::optional<std::string_view> only) const;
  // Adds the request id to an answer of the router's own. An error gets its log line here.
  void name_request(http::Response& response, const std::string& request_id) const;
  // Both return an id. request_id_of() takes the client's own id if it is short and printable.
  [[nodiscard]] std::string new_request_id();
  [[nodiscard]] std::string request_id_of(const http::Request& http);

  const Deps& services_;
  Proxy& proxy_;
  http::Client& to_workers_;
  adapters::Adapters adapters_;
  // Unix time in seconds, "created" in the list of models.
  const std::int64_t started_s_;
  const std::uint64_t id_seed_;
  std::atomic<std::uint64_t> id_turn_{0};
};

}  // namespace sightline::proxy
