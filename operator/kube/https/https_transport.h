// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

#include "operator/kube/config/api_credentials.h"
#include "operator/kube/rest/transport.h"

namespace sightline::https {

// What a transport is made with.
struct HttpsOptions {
  // "https://host:port". "http://…" for tests.
  std::string server;
  // Empty: the server's host.
  std::string tls_server_name;
  // The server's certificate is not checked.
  bool is_insecure = false;
  // Of an answer.
  std::size_t body_bytes_max = 64 << 20;
  // The bytes of a watch that are received and not read yet.
  std::size_t stream_bytes_max = 1 << 20;
};

// HTTP/1.1 over TLS with cpprestsdk. Calls share keep-alive connections. Each stream has its own. A
// new certificate or authority means new connections.
//
// The library reads a chunk of an answer whole before it can be counted. For a server that lies
// about the size of a chunk, only the time of a call or of a silent watch is a limit.
// Thread safety: all methods from any thread.
class HttpsTransport : public rest::Transport {
 public:
  // A stop ends all requests with Cancelled. Credentials and clock must outlive it.
  HttpsTransport(HttpsOptions options, config::Credentials& credentials, const Clock& clock,
                 std::stop_token stop);
  ~HttpsTransport() override;

  client::Answer<rest::HttpAnswer> exchange(const rest::HttpRequest& request,
                                            Duration time_max) override;
  client::Answer<Opened> open(const rest::HttpRequest& request, Duration time_max) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::https
