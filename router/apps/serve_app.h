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

// Makes the worker list from the whole configuration when the file has changed.
using ReadWorkers = std::function<Result<std::vector<contract::WorkerSpec>>(std::string file)>;

struct ServeOptions {
  contract::ServeSettings settings;
  contract::SettingOrigins origins;  // of them
  std::string config_file;           // watched for changes of the workers; empty: none
  ReadWorkers read_workers;
  process::OpenFilesPlan open_files;
  process::MemoryPlan memory;
};

// Threads for a setting of which 0 means one per core that the process may use: its affinity mask
// and the quota of its control group.
std::size_t threads_or_cores(std::uint32_t wanted);

// `sightline serve` put together: every part is made, wired, started and stopped here.
// Thread safety: create() and run() from main.
class ServeApp {
 public:
  // Listens on all ports when it returns. Errors name what to change: model directory, identity
  // key file, ports.
  static Result<std::unique_ptr<ServeApp>> create(ServeOptions options);
  ~ServeApp();

  // Of the roles that the process has.
  [[nodiscard]] std::optional<std::uint16_t> port() const;
  [[nodiscard]] std::uint16_t admin_port() const;
  [[nodiscard]] std::optional<std::uint16_t> selection_port() const;

  // Rereads the configuration file as if it had changed; without one, nothing. Not during stop().
  void reread_config();

  // Stops accepting, lets running answers finish for up to drain_timeout, then ends everything.
  void stop();

  struct Parts;
  explicit ServeApp(std::unique_ptr<Parts> parts);  // by create()

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace sightline::apps
