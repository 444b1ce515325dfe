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

struct RestOptions {
  // "sightline-operator/1.2.3 (linux/amd64) 0123abc/mmr": what audit logs and priorities go by.
  std::string user_agent;
  std::string host;  // label of metrics
  // Of a call, each time that it is sent, and of a watch until it begins. A lease's client has a
  // shorter one.
  Duration call_timeout = std::chrono::seconds(30);
  int retries_max = 10;                               // when the server asks for them
  Duration retry_wait_max = std::chrono::seconds(5);  // a longer one is left to the caller
  std::size_t line_bytes_max = 8 << 20;               // of a watch
  std::optional<double> requests_per_second;          // nothing: as many as the server takes
  double requests_burst = 10;
  // Asked right before a request that changes something is sent, each time; empty: may.
  std::function<bool()> may_write;
  // Waits; false: the process stops, and the call with it.
  std::function<bool(Duration)> pause;
};

// Waits that a stop ends.
[[nodiscard]] std::function<bool(Duration)> stoppable_pause(std::stop_token stop);

// How long to wait before a request is sent again; nothing: it is not. Sent again is what the
// server asks for with Retry-After, on 429 and 5xx, and a GET whose connection broke. Pure.
[[nodiscard]] std::optional<Duration> retry_wait(const std::string& method,
                                                 const client::Answer<HttpAnswer>& answer);

// The API server behind a Transport.
// Thread safety: all methods from any thread.
class RestClient : public client::ApiClient {
 public:
  // The others must outlive it.
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
  client::Answer<HttpAnswer> send(HttpRequest request);
  client::Answer<object::Value> send_for_object(HttpRequest request);
  // Waits for its turn, and asks whether it may be sent at all.
  client::Answer<Done> admit(const std::string& method);
  void count(const HttpRequest& request, const client::Answer<HttpAnswer>& answer, Duration took);
  void add_headers(HttpRequest& request) const;

  const RestOptions options_;
  Transport& transport_;
  const Clock& clock_;
  runtime::Metrics& metrics_;
  Mutex mutex_;
  std::optional<pace::TokenBucket> bucket_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::rest
