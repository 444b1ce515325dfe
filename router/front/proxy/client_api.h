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

// The client port: paths to what answers them, admission, and errors in OpenAI's shape.
// Thread safety: handle() on any I/O thread.
class ClientApi {
 public:
  // All outlive this; `to_workers`: the client with which requests reach them.
  ClientApi(const Services& services, Proxy& proxy, http::Client& to_workers);

  // Answers by the header what no body would change: unknown paths, methods that a path does not
  // take, and requests beyond server.concurrent_requests_max. It books nothing: how many there are
  // is judged again when the body has come. On any I/O thread.
  http::Admission admission(const http::Request& head);

  // Answers one request that was admitted, whatever it is.
  Task<void> handle(http::Request& http, http::ResponseWriter& client);

  // The answer to what the HTTP server itself refuses: a limit or broken framing.
  http::Response refusal(int status, const Error& error);

 private:
  // What the router answers without a worker.
  [[nodiscard]] http::Response own_content(std::string_view path) const;
  [[nodiscard]] http::Response model_response(std::string_view name) const;
  // An answer without a worker, named and counted.
  http::Response finished(std::string_view route, const http::Request& http,
                          http::Response response);
  Task<void> answer(std::string_view route, const http::Request& http, http::Response response,
                    http::ResponseWriter& client);
  Task<void> generate(openai::Endpoint endpoint, http::Request& http, http::ResponseWriter& client);
  Task<void> pass(http::Request& http, http::ResponseWriter& client);
  Task<void> change_adapter(const http::Request& http, http::ResponseWriter& client);
  // The error of one request too many, told by how many there are with it.
  [[nodiscard]] Result<Done> admit(std::size_t requests) const;
  Task<void> conclude(Result<Done> result, const http::Request& http, RequestTrace& trace,
                      http::ResponseWriter& client);
  // The answer to one request too many.
  http::Response too_many(const Error& error, std::string_view route, const http::Request& http);
  [[nodiscard]] std::string models_body() const;
  // The served models as JSON, with commas between them, or the one of that name; "": none.
  [[nodiscard]] std::string model_entries(std::optional<std::string_view> only) const;
  // Puts the id into an answer of the router's own; errors among these get their log line here.
  void name_request(http::Response& response, const std::string& request_id) const;
  [[nodiscard]] std::string new_request_id();
  [[nodiscard]] std::string request_id_of(const http::Request& http);

  const Services& services_;
  Proxy& proxy_;
  http::Client& to_workers_;
  adapters::Adapters adapters_;
  const std::int64_t started_s_;  // unix time, "created" of the model list
  const std::uint64_t id_seed_;
  std::atomic<std::uint64_t> id_turn_{0};
};

}  // namespace sightline::proxy
