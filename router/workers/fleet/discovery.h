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

// What a worker says about itself, turned into what we do with it. Pure.
namespace sightline::fleet {

using family::EventSource;
using family::ResolvedEndpoint;

// What one look at a worker brought. An Error in a part means that this part is not known.
struct Probe {
  Result<Done> health = Done{};
  Result<std::vector<ServedModel>> models = std::vector<ServedModel>{};
  Result<std::vector<EventSource>> sources = std::vector<EventSource>{};
  Result<ServerLoad> load = ServerLoad{};
  bool refused = false;     // nothing listens: down at once, without a second look
  bool is_unwell = false;   // the worker itself says that it cannot serve
  std::string key_problem;  // why there is no key for it, where one is configured
  std::optional<Result<family::Version>> version = std::nullopt;  // nothing: it was not asked for
};

// Why what was learned under an adapter's name is not to be believed.
enum class AdapterNews : std::uint8_t {
  None,   // it is
  Other,  // a name stands for another adapter
  Full,   // there are more adapters than are remembered
};
std::string text_of(AdapterNews news);

// Takes over what the worker told of its models and its version.
AdapterNews take_server_facts(Worker& view, const Probe& probe);

// What ranks a worker has and where their events are, after its configuration and what the worker
// tells.
struct Discovery {
  std::vector<FoundRank> ranks{1};  // by number, at least one
  std::string reason;               // why no rank's events are known
  // Not empty: the worker contradicts the operator's dp=. It then counts as one rank.
  std::string rank_conflict;

  [[nodiscard]] bool has_events() const;
};

// Takes over the load, and the block size where the server's event sources tell it.
void take_load(Worker& view, const Probe& probe);

// False if the probe does not say where the worker's events are and which ranks it has: a worker
// that stops telling for a moment has neither moved its events nor lost a rank.
bool tells_endpoints(const Probe& probe);

// Explicit settings win over what the worker tells. Pure.
Discovery discover(const contract::WorkerSpec& spec, const Probe& probe);

}  // namespace sightline::fleet
