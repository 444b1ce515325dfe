// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/contract/worker_spec.h"

// What an engine's server says of itself, whatever its family.
namespace sightline::family {

inline constexpr std::uint32_t kBlockSizeMax = 1 << 16;  // tokens
inline constexpr std::uint32_t kGpuBlocksMax = 1 << 30;
inline constexpr std::size_t kModelsMax = 256;         // entries of /v1/models
inline constexpr std::size_t kNameBytesMax = 256;      // of a model id or an endpoint
inline constexpr std::size_t kRootBytesMax = 4096;     // of a model's path, as in Linux
inline constexpr std::int64_t kModelLenMax = 1 << 30;  // tokens
inline constexpr double kRequestsMax = 1e6;            // far more than any engine has at a time
inline constexpr double kGeneratedMax = 1e15;          // tokens: a thousand years of any engine

// Events of one rank as the engine configured them.
struct EventSource {
  std::uint32_t rank = 0;
  bool enabled = false;  // events are on and published over ZMQ
  std::string endpoint;
  std::string replay_endpoint;   // empty: none
  std::uint32_t block_size = 0;  // tokens, 0: not told here
};

// What an engine says of the load of one rank.
struct RankLoad {
  std::uint32_t number = 0;  // of the rank
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  double kv_usage = 0;           // 0..1
  std::uint32_t gpu_blocks = 0;  // that its cache has, 0: not told
};

struct ServerLoad {
  std::uint32_t running = 0;     // of all ranks
  std::uint32_t waiting = 0;     // of all ranks
  double kv_usage = 0;           // 0..1, the fullest rank
  double generated_tokens = 0;   // since it started, of all ranks; 0: not told
  std::uint32_t block_size = 0;  // tokens, 0: not told or ranks disagree
  std::vector<RankLoad> ranks;   // by number
};

// A name that requests may use as "model".
struct ServedModel {
  std::string id;
  std::string parent;               // base model of a LoRA adapter, empty for a base model
  std::uint32_t max_model_len = 0;  // tokens, 0: not told
  std::string root;                 // what it was loaded from, empty: not told
  double created_s = 0;             // when the engine says so, unix time; 0: not told
  std::string owner;                // "owned_by": engines put their family here; empty: not told
  // But for created_s: vLLM tells the time of the list, another one at each probe.
  bool operator==(const ServedModel& other) const;
};

}  // namespace sightline::family
