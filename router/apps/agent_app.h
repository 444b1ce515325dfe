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

// What `sightline agent` needs to start.
struct AgentOptions {
  contract::AgentSettings settings;
  // Watched for changes of the workers. Empty: there is no file.
  std::string config_file;
  // Reads the worker list from the whole configuration when the file has changed.
  std::function<Result<std::vector<contract::WorkerSpec>>(std::string file)> read_workers;
};

// The program `sightline agent`. It reads the events of its workers' engines, and publishes over
// NATS which blocks they hold. It never waits for NATS: without a connection it continues to read.
// Thread safety: create() and stop() from main, reread_config() from any thread.
class AgentApp {
 public:
  // Listens on the admin port when it returns. Errors name what to change: model directory,
  // identity key file, NATS settings or port.
  static Result<std::unique_ptr<AgentApp>> create(AgentOptions options);
  ~AgentApp();  // calls stop()

  // The admin port, also if the system chose it.
  [[nodiscard]] std::uint16_t admin_port() const;

  // Reads the configuration file again, as if it had changed. Without a file it does nothing. Not
  // during stop().
  void reread_config();

  // Announces the end on every stream and ends everything. May be called twice.
  void stop();

  struct Parts;
  explicit AgentApp(std::unique_ptr<Parts> parts);  // called by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::apps
