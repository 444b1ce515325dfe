// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>

#include "common/base/clock.h"

#include "operator/kube/config/credentials.h"
#include "operator/kube/rest/transport.h"

namespace sightline::https {

struct HttpsOptions {
  std::string server;                      // "https://host:port", "http://…" for tests
  std::string tls_server_name;             // empty: the server's host
  bool is_insecure = false;                // the server's certificate is not looked at
  std::size_t body_bytes_max = 64 << 20;   // of an answer
  std::size_t stream_bytes_max = 1 << 20;  // of a watch, received and not read yet
};

// HTTP/1.1 over TLS by cpprestsdk. Calls share connections that are kept; every stream has its own.
// New certificates or a new authority mean new connections. The library reads a chunk of an answer
// whole before it can be counted, so that a server that lies in the size of a chunk is bounded by
// the time that a call or a silent watch may last.
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
