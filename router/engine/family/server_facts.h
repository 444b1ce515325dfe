// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/contract/worker_spec.h"

// What an engine's server reports about itself, in any family. A report beyond these limits is
// ignored, cut or refused.
namespace sightline::family {

// Limit of a block size, in tokens.
inline constexpr std::uint32_t kBlockSizeMax = 1 << 16;
// Limit of the blocks of one rank's cache.
inline constexpr std::uint32_t kGpuBlocksMax = 1 << 30;
// Limit of the entries of /v1/models.
inline constexpr std::size_t kModelsMax = 256;
// Limit of a model id or an endpoint, in bytes.
inline constexpr std::size_t kNameBytesMax = 256;
// Limit of a model's path, as in Linux.
inline constexpr std::size_t kRootBytesMax = 4096;
// Limit of a model's context, in tokens.
inline constexpr std::int64_t kModelLenMax = 1 << 30;
// Far more requests than any engine has at a time.
inline constexpr double kRequestsMax = 1e6;
// The tokens of a thousand years of any engine.
inline constexpr double kGeneratedMax = 1e15;

// The KV events of one rank, as the engine configured them.
struct EventSource {
  std::uint32_t rank = 0;
  // Events are on and published over ZMQ.
  bool enabled = false;
  std::string endpoint;
  // Empty: no replay.
  std::string replay_endpoint;
  std::uint32_t block_size = 0;  // tokens. 0: not in this report
};

// The load of one rank.
struct RankLoad {
  std::uint32_t number = 0;  // the rank's number.
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  double kv_usage = 0;  // from 0 to 1.
  // Blocks of its cache. 0: not reported.
  std::uint32_t gpu_blocks = 0;
};

// The load of all ranks of a server.
struct ServerLoad {
  std::uint32_t running = 0;  // of all ranks.
  std::uint32_t waiting = 0;  // of all ranks.
  double kv_usage = 0;        // from 0 to 1, of the fullest rank.
  // Tokens generated since the server's start, of all ranks. 0: not reported.
  double generated_tokens = 0;
  std::uint32_t block_size = 0;  // tokens. 0: not reported, or ranks disagree.
  std::vector<RankLoad> ranks;   // sorted by number.
};

// A name that requests may use as "model".
struct ServedModel {
  std::string id;
  // The base model of a LoRA adapter. Empty for a base model.
  std::string parent;
  std::uint32_t max_model_len = 0;  // tokens. 0: not reported.
  // The path it was loaded from. Empty: not reported.
  std::string root;
  // Unix time that the engine reports. 0: not reported.
  double created_s = 0;
  // The value of "owned_by", in which engines name their family. Empty: not reported.
  std::string owner;
  // Ignores created_s. vLLM reports the time of the list there, which differs at each probe.
  bool operator==(const ServedModel& other) const;
};

}  // namespace sightline::family
