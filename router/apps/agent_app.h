// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/agent_settings.h"

namespace sightline::apps {

struct AgentOptions {
  contract::AgentSettings settings;
  std::string config_file;  // watched for changes of the workers; empty: none
  // Makes the worker list from the whole configuration when the file has changed.
  std::function<Result<std::vector<contract::WorkerSpec>>(std::string file)> read_workers;
};

// `sightline agent` put together: reads the events of its workers' engines and tells routers over
// NATS what they hold. It never waits for NATS: while that is away it reads on.
// Thread safety: all methods from main.
class AgentApp {
 public:
  // Listens on the admin port when it returns. Errors name what to change: model directory,
  // identity key file, NATS settings, port.
  static Result<std::unique_ptr<AgentApp>> create(AgentOptions options);
  ~AgentApp();  // as stop()

  [[nodiscard]] std::uint16_t admin_port() const;

  // Rereads the configuration file as if it had changed; without one, nothing. Not during stop().
  void reread_config();

  // Says farewell on every stream and ends everything. Idempotent.
  void stop();

  struct Parts;
  explicit AgentApp(std::unique_ptr<Parts> parts);  // by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::apps
