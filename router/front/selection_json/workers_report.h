// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"

#include "router/workers/fleet/served.h"

// A router's report about its workers for frontends, as JSON. Pure functions.
namespace sightline::selection_json {

// The report.
struct WorkersReport {
  // Names the settings that the keys of the deployment depend on.
  std::string identity;
  fleet::Served served;
  // The number of ranks whose blocks the router knows. Absent if it is not reported.
  std::optional<std::uint32_t> known = std::nullopt;
  // Why frontends should prefer other routers. Empty if it is ready.
  std::string not_ready = {};
  // Why the router's blocks and the load of other routers are old: it is cut off from NATS, or NATS
  // is late. Empty if they are fresh. The text stays the same during one fault.
  std::string stale = {};

  bool operator==(const WorkersReport&) const = default;
};
// Returns the report as JSON. Models beyond the limits, in number or length of a name, are left
// out. No frontend accepts requests for them.
std::string write_told(const WorkersReport& told);
// Reads a report. Errors: InvalidArgument, also for an unknown engine family.
Result<WorkersReport> read_told(std::string body);

}  // namespace sightline::selection_json
