// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/pace/token_bucket.h"
#include "operator/kube/rest/transport.h"

namespace sightline::rest {

// What a client is made with.
struct RestOptions {
  // "sightline-operator/1.2.3 (linux/amd64) 0123abc/mmr". Audit logs and priority levels use it.
  std::string user_agent;
  // A label of the metrics.
  std::string host;
  // The limit of each attempt of a call, and of a watch until it begins. The client of a Lease has
  // a shorter one.
  Duration call_timeout = std::chrono::seconds(30);
  // Retries when the server requests them.
  int retries_max = 10;
  // After a longer wait the caller must retry itself.
  Duration retry_wait_max = std::chrono::seconds(5);
  // Of a line of a watch.
  std::size_t line_bytes_max = 8 << 20;
  // Nothing: as many as the server accepts.
  std::optional<double> requests_per_second;
  double requests_burst = 10;
  // Asked directly before each attempt of a request that changes something. Empty: it may.
  std::function<bool()> may_write;
  // Waits. Returns false if the process stops, which also ends the call.
  std::function<bool(Duration)> pause;
};

// A pause() that a stop ends.
[[nodiscard]] std::function<bool(Duration)> stoppable_pause(std::stop_token stop);

// How long to wait before a request is sent again. Nothing: do not send it again. Requests are
// repeated if the server sends Retry-After, on 429 and on 5xx. So is a GET whose connection broke.
// Pure.
[[nodiscard]] std::optional<Duration> retry_wait(const std::string& method,
                                                 const client::Answer<HttpAnswer>& answer);

// Calls the API server through a Transport. Repeats requests as retry_wait() says.
// Thread safety: all methods from any thread.
class RestClient : public client::ApiClient {
 public:
  // The other arguments must outlive it.
  RestClient(RestOptions options, Transport& transport, const Clock& clock,
             runtime::Metrics& metrics);

  client::Answer<object::Value> get(const object::Resource& resource,
                                    const object::Key& key) override;
  client::Answer<client::List> list(const object::Resource& resource,
                                    const client::ListOptions& options) override;
  client::Answer<std::unique_ptr<client::Watch>> watch(
      const object::Resource& resource, const client::WatchOptions& options) override;
  client::Answer<object::Value> create(const object::Resource& resource,
                                       const object::Value& object) override;
  client::Answer<object::Value> update(const object::Resource& resource,
                                       const object::Value& object) override;
  client::Answer<object::Value> apply(const object::Resource& resource, const object::Value& object,
                                      const client::ApplyOptions& options) override;
  client::Answer<object::Value> merge_patch(const object::Resource& resource,
                                            const object::Key& key, const object::Value& patch,
                                            const std::string& subresource) override;
  client::Answer<Done> remove(const object::Resource& resource, const object::Key& key,
                              const client::DeleteOptions& options) override;

 private:
  // Sends a request, with retries. Counts each attempt.
  client::Answer<HttpAnswer> send(HttpRequest request);
  // Like send(), for an answer that must be a JSON object.
  client::Answer<object::Value> send_for_object(HttpRequest request);
  // Waits for the request's turn, and checks whether it may be sent.
  client::Answer<Done> admit(const std::string& method);
  // Counts a request with the metrics of client-go.
  void count(const HttpRequest& request, const client::Answer<HttpAnswer>& answer, Duration took);
  // Adds Accept and User-Agent. Keeps an Accept that the request has already.
  void add_headers(HttpRequest& request) const;

  const RestOptions options_;
  Transport& transport_;
  const Clock& clock_;
  runtime::Metrics& metrics_;
  Mutex mutex_;
  std::optional<pace::TokenBucket> bucket_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::rest
