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

// What a change of the fleet makes due once its lock is released, in this order.
struct Effects {
  struct Line {
    LogLevel level;
    std::string message;
    std::vector<LogField> fields;
  };
  void tell(LogLevel level, std::string message, std::vector<LogField> fields) {
    lines.push_back({level, std::move(message), std::move(fields)});
  }

  std::vector<Line> lines;
  std::vector<CacheId> removed;
  std::vector<CacheId> ready;
  std::vector<std::string> gone_workers;
};

}  // namespace sightline::fleet
