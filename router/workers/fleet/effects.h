// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/log.h"

#include "router/workers/fleet/worker.h"

namespace sightline::fleet {

// What a change of the fleet causes after its lock is released, in this order. Under the lock, logs
// and listeners would delay requests.
struct Effects {
  // A log line.
  struct Line {
    LogLevel level;
    std::string message;
    std::vector<LogField> fields;
  };
  // Adds a log line.
  void tell(LogLevel level, std::string message, std::vector<LogField> fields) {
    lines.push_back({level, std::move(message), std::move(fields)});
  }

  // Lines for the log.
  std::vector<Line> lines;
  // Feeds that must not be read any more.
  std::vector<CacheId> removed;
  // Feeds to read from now on.
  std::vector<CacheId> ready;
  // Workers whose metric series end.
  std::vector<std::string> gone_workers;
};

}  // namespace sightline::fleet
