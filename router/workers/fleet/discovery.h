// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/worker_spec.h"

#include "router/engine/family/endpoints.h"
#include "router/engine/family/family.h"
#include "router/engine/family/server_facts.h"
#include "router/workers/fleet/worker.h"

// From what a worker reports about itself to its ranks, events and properties. Pure.
namespace sightline::fleet {

using family::EventSource;
using family::ResolvedEndpoint;

// The results of one probe of a worker. An Error in a part means that this part is not known.
struct Probe {
  // An Error also if the worker does not answer at all.
  Result<Done> health = Done{};
  Result<std::vector<ServedModel>> models = std::vector<ServedModel>{};
  Result<std::vector<EventSource>> sources = std::vector<EventSource>{};
  Result<ServerLoad> load = ServerLoad{};
  // Nothing listens: the worker is down without a second probe.
  bool refused = false;
  // /health answers 5xx.
  bool is_unwell = false;
  // Why there is no key, although a file is configured.
  std::string key_problem;
  // Nothing: not asked.
  std::optional<Result<family::Version>> version = std::nullopt;
};

// Why blocks under an adapter's name do not count.
enum class AdapterNews : std::uint8_t {
  // They count.
  None,
  // A name belongs to another adapter.
  Other,
  // There are more adapters than are remembered.
  Full,
};
// The reason as a log line.
std::string text_of(AdapterNews news);

// Sets the worker's models, adapters and version from the probe.
AdapterNews take_server_facts(Worker& view, const Probe& probe);

// The ranks of a worker and their events, by its configuration and its own report.
struct Discovery {
  // By number, at least one.
  std::vector<FoundRank> ranks{1};
  // Why no rank's events are known.
  std::string reason;
  // Not empty: the worker contradicts the operator's dp. It then counts as one rank.
  std::string rank_conflict;

  // Whether the events of any rank are known.
  [[nodiscard]] bool has_events() const;
};

// Sets the load, and the block size if all event sources report the same.
void take_load(Worker& view, const Probe& probe);

// Whether the probe reports the worker's event endpoints and ranks. If a worker does not report
// them for a moment, its events have not moved and no rank is lost.
bool tells_endpoints(const Probe& probe);

// Decides the ranks and endpoints. Explicit settings override what the worker reports. Pure.
Discovery discover(const contract::WorkerSpec& spec, const Probe& probe);

}  // namespace sightline::fleet
