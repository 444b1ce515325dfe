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

// Loads and unloads LoRA adapters on all workers or on no worker, because any of them may get a
// request for an adapter.
//
// Thread safety: any I/O thread may call change(). One change runs at a time in this process. It
// does not see changes of other processes.
class Adapters {
 public:
  // All must live longer.
  struct Deps {
    const Published<contract::ServeSettings>& settings;
    std::function<std::shared_ptr<const fleet::Served>()> served;
    selection::Selector& selector;
    runtime::Metrics& metrics;
    http::Client& to_workers;
  };

  explicit Adapters(Deps services) : services_(std::move(services)) {}

  // Sends the request to every worker, one after the other, and returns the answer of the last one.
  // changes_adapters() must be true for its path. Workers without need of a change are skipped,
  // unless this holds for all of them. If a worker rejects the change, the workers before it are
  // changed back, and its answer is returned. The change continues if the client leaves.
  //
  // Errors: those of read_change(), and Unavailable in these cases:
  // - another change is running,
  // - a worker takes no requests (no worker is then changed),
  // - a worker gives no answer,
  // - a worker cannot be changed back, which the message names.
  Task<Result<http::Response>> change(const http::Request& http, const std::string& request_id);

 private:
  struct AdapterTarget {
    std::string worker;
    http::ServerAddress address;
    // The source before the change, or empty if the adapter was not loaded.
    std::string loaded_from;
  };
  // The whole answer of one worker.
  struct WorkerAnswer {
    int status = 0;
    http::Headers headers;
    std::string body;

    [[nodiscard]] bool is_good() const { return status >= 200 && status < 300; }
  };

  // Makes the change while no other one runs in this process.
  Task<Result<http::Response>> change_alone(const AdapterChange& change, const http::Request& http,
                                            const std::string& request_id) const;
  // Returns all workers that need the adapter.
  [[nodiscard]] Task<Result<std::vector<AdapterTarget>>> targets() const;
  // Finds the source of the adapter on a worker before the change.
  Task<Result<Done>> look_at(AdapterTarget& target, const AdapterChange& change,
                             const http::Headers& headers) const;
  // Sends the change to each target in turn, and undoes it after the first failure.
  Task<Result<http::Response>> change_all(const AdapterChange& change,
                                          const std::vector<AdapterTarget>& targets,
                                          const http::RequestHead& head,
                                          const std::string& body) const;
  // Changes workers back. Returns the names of the workers for which this failed.
  Task<std::string> undo(const AdapterChange& change,
                         const std::vector<const AdapterTarget*>& changed,
                         const http::Headers& headers) const;
  // Sends one request on a fresh connection, and reads the whole answer.
  Task<Result<WorkerAnswer>> ask(const AdapterTarget& target, const http::RequestHead& head,
                                 const std::string& body) const;

  Deps services_;
  std::atomic<bool> is_changing_ = false;
};

}  // namespace sightline::adapters
