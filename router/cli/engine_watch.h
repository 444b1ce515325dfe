// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/contract/serve_settings.h"
#include "common/runtime/worker_thread.h"

#include "router/events/zmq_subscriber.h"
#include "router/fleet/fleet.h"
#include "router/prepare/model.h"

namespace sightline::cli {

// Joins the fleet and the event subscriber: engines that become known are followed, engines that
// leave are forgotten, and what their events say of the block size reaches the fleet.
// Thread safety: engine_ready and engine_removed as the fleet calls them; the rest is internal.
class EngineWatch {
 public:
  // How often the block sizes that events told are looked at. Until then a worker counts with the
  // block size it was configured with; a contradiction has already dropped it from the index.
  static constexpr std::chrono::milliseconds kInterval{100};

  // All outlive this; scope_model as for requests.
  EngineWatch(events::EventSubscriber& subscriber, const prepare::Model& model,
              std::string scope_model);

  void engine_ready(const fleet::EngineEndpoints& engine);
  void engine_removed(EngineId engine);

  // Tells the fleet about block sizes from now on, until stop().
  void start(fleet::Fleet& fleet);
  void stop();

 private:
  void look(fleet::Fleet& fleet);

  events::EventSubscriber& subscriber_;
  const prepare::Model& model_;
  const std::string scope_model_;
  std::map<EngineId, std::uint32_t> told_;  // block sizes the fleet knows, by the watch's thread
  std::optional<WorkerThread> thread_;
};

}  // namespace sightline::cli
