// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/contract/live_settings.h"
#include "common/contract/serve_settings.h"
#include "common/runtime/shutdown.h"

#include "router/process/memory_plan.h"
#include "router/process/open_files.h"

namespace sightline::apps {

// Reads the worker list from the whole configuration when the file has changed.
using ReadWorkers = std::function<Result<std::vector<contract::WorkerSpec>>(std::string file)>;

// What `sightline serve` needs to start.
struct ServeOptions {
  contract::ServeSettings settings;
  // Where each setting comes from.
  contract::SettingOrigins origins;
  // Watched for changes of the workers. Empty: there is no file.
  std::string config_file;
  ReadWorkers read_workers;
  // How many connections of each kind it may open.
  process::OpenFilesPlan open_files;
  // How much memory it may use for data of others.
  process::MemoryPlan memory;
};

// Returns the number of threads for a setting. 0 means one for each core that the process may use,
// by its affinity mask and the quota of its control group.
std::size_t threads_or_cores(std::uint32_t wanted);

// The program `sightline serve`: makes, connects, starts and stops every part.
// Thread safety: create() and stop() from main, reread_config() from any thread.
class ServeApp {
 public:
  // Listens on all ports when it returns. Errors name what to change: model directory, identity key
  // file or ports.
  static Result<std::unique_ptr<ServeApp>> create(ServeOptions options);
  // Calls stop().
  ~ServeApp();

  // The ports of the roles that the process has. Nothing: it does not have that role.
  [[nodiscard]] std::optional<std::uint16_t> port() const;
  [[nodiscard]] std::uint16_t admin_port() const;
  [[nodiscard]] std::optional<std::uint16_t> selection_port() const;

  // Reads the configuration file again, as if it had changed. Without a file it does nothing. Not
  // during stop().
  void reread_config();

  // Stops accepting requests, waits up to `server.drain_timeout` for running answers, then ends
  // everything.
  void stop();

  struct Parts;
  explicit ServeApp(std::unique_ptr<Parts> parts);  // called by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::apps
