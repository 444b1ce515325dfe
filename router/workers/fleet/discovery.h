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

#include "router/workers/fleet/worker.h"

// What an engine says about itself, read and turned into what we do with it. Pure; every text comes
// from a peer and is bounded by the limits below. Formats as recorded from vLLM 0.32.
namespace sightline::fleet {

using contract::kRanksMax;
inline constexpr std::size_t kModelsMax = 256;         // entries of /v1/models
inline constexpr std::size_t kNameBytesMax = 256;      // of a model id or an endpoint
inline constexpr std::size_t kRootBytesMax = 4096;     // of a model's path, as in Linux
inline constexpr std::int64_t kModelLenMax = 1 << 30;  // tokens

// Events of one rank as the engine configured them.
struct EventSource {
  std::uint32_t rank = 0;
  bool enabled = false;  // events are on and published over ZMQ
  std::string endpoint;
  std::string replay_endpoint;  // empty: none
};

// GET /v1/models. An entry with a parent is a LoRA adapter. Errors: Corrupt.
Result<std::vector<ServedModel>> parse_models(std::string body);

// GET /version: {"version":"0.32.0"}. Errors: Corrupt.
Result<vllm::Version> parse_version(std::string body);

// GET /kv_event_sources: object keyed by rank, sorted by rank here; may be empty. Errors: Corrupt.
Result<std::vector<EventSource>> parse_event_sources(std::string body);

struct ResolvedEndpoint {
  std::string endpoint;
  bool bind = false;  // the engine connects: we bind

  bool operator==(const ResolvedEndpoint&) const = default;
};

// The PUB endpoint as the engine has it -> what we do. vLLM binds only if the endpoint contains
// "*" or "::" or starts with ipc:// or inproc://; then we connect to the worker's host. Otherwise
// it connects, and we bind that port on all addresses (its host name is ours). Errors: Corrupt.
Result<ResolvedEndpoint> resolve_events_endpoint(std::string_view engine_side,
                                                 std::string_view worker_host);

// The replay socket always binds on the engine's side, so a wildcard host becomes the worker's.
Result<std::string> resolve_replay_endpoint(std::string_view engine_side,
                                            std::string_view worker_host);

// What one look at a worker brought. An Error in a part means that this part is not known.
struct Probe {
  Result<Done> health = Done{};
  Result<std::vector<ServedModel>> models = std::vector<ServedModel>{};
  Result<std::vector<EventSource>> sources = std::vector<EventSource>{};
  Result<EngineLoad> load = EngineLoad{};
  bool refused = false;     // nothing listens: down at once, without a second look
  bool is_unwell = false;   // the engine itself says that it cannot serve
  std::string key_problem;  // why there is no key for it, where one is configured
  std::optional<Result<vllm::Version>> version = std::nullopt;  // nothing: it was not asked for
};

// Why what was learned under an adapter's name is not to be believed.
enum class AdapterNews : std::uint8_t {
  None,   // it is
  Other,  // a name stands for another adapter
  Full,   // there are more adapters than are remembered
};
std::string text_of(AdapterNews news);

// Takes over what the engine told of its models and its version.
AdapterNews take_facts(Worker& view, const Probe& probe);

// What ranks a worker has and where their events are, after its configuration and what the engine
// tells.
struct Discovery {
  std::vector<EngineEndpoints> engines;    // ids not given yet; empty: the reason says why
  std::vector<std::uint32_t> ranks = {0};  // their numbers, ascending, at least one
  std::string reason;
  // Not empty: the engine contradicts the operator's dp=. It then counts as one rank.
  std::string rank_conflict;
};

// False if the probe does not say where the worker's events are and which ranks it has: an engine
// that stops telling for a moment has neither moved its events nor lost a rank.
bool tells_endpoints(const Probe& probe);

// Explicit settings win over what the engine tells. Pure.
Discovery discover(const contract::WorkerSpec& spec, const Probe& probe);

}  // namespace sightline::fleet
