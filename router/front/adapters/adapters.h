// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/published.h"
#include "common/base/result.h"
#include "common/contract/serve_settings.h"
#include "common/http/client.h"
#include "common/http/message.h"
#include "common/runtime/metrics.h"
#include "common/runtime/task.h"

#include "router/front/adapters/adapter_change.h"
#include "router/front/selection/selector.h"
#include "router/workers/fleet/served.h"

namespace sightline::adapters {

// Loads and unloads LoRA adapters on all workers or on none: a request for an adapter may go to
// any of them.
// Thread safety: change() on any I/O thread. One change at a time in this process; those of other
// processes are not known here.
class Adapters {
 public:
  struct Services {  // all outlive this
    const Published<contract::ServeSettings>& settings;
    std::function<std::shared_ptr<const fleet::Served>()> served;
    selection::Selector& selector;
    runtime::Metrics& metrics;
    http::Client& to_workers;
  };

  explicit Adapters(Services services) : services_(std::move(services)) {}

  // Sends the request, whose path changes_adapters(), to every worker, one after the other, and
  // gives the last one's answer. Workers that have what is asked for are left as they are, unless
  // all have. Where one refuses, those before it are changed back, and its answer is given. It goes
  // on when the client leaves.
  // Errors: as read_change(); Unavailable while another change is under way and where a worker
  // takes no requests, before any is changed, where one gives no answer, and where one cannot be
  // changed back, which the message names.
  Task<Result<http::Response>> change(const http::Request& http, const std::string& request_id);

 private:
  struct Target {
    std::string worker;
    http::ServerAddress address;
    std::string loaded_from;  // before the change; empty: the adapter was not loaded
  };
  struct Answer {
    int status = 0;
    http::Headers headers;
    std::string body;

    [[nodiscard]] bool is_good() const { return status >= 200 && status < 300; }
  };

  Task<Result<http::Response>> change_alone(const AdapterChange& change, const http::Request& http,
                                            const std::string& request_id) const;
  [[nodiscard]] Task<Result<std::vector<Target>>> targets() const;
  Task<Result<Done>> look_at(Target& target, const AdapterChange& change,
                             const http::Headers& headers) const;
  Task<Result<http::Response>> change_all(const AdapterChange& change,
                                          const std::vector<Target>& targets,
                                          const http::RequestHead& head,
                                          const std::string& body) const;
  // The names of those that could not be changed back.
  Task<std::string> undo(const AdapterChange& change, const std::vector<const Target*>& changed,
                         const http::Headers& headers) const;
  Task<Result<Answer>> ask(const Target& target, const http::RequestHead& head,
                           const std::string& body) const;

  Services services_;
  std::atomic<bool> is_changing_ = false;
};

}  // namespace sightline::adapters
