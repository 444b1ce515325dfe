// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/base/result.h"

#include "simulator/core/media_cache.h"
#include "simulator/processor/checkpoint.h"

namespace sightline::api {

// One image of a request, as the engine names it.
struct MediaInput {
  std::string identifier;
  // Its number of prompt tokens.
  std::uint32_t tokens = 0;
};

// The processor cache of one engine, by identifier. vLLM 0.32 mirrors it in every API server. A
// cached item has priority over bytes that are sent with the same uuid.
struct ProcessorCache {
  explicit ProcessorCache(std::uint64_t bytes) : items(bytes), enabled(bytes > 0) {}
  core::MediaCache items;
  const bool enabled;
  // Look-ups since the start, and the part of them that found an item.
  std::uint64_t queries = 0;
  std::uint64_t hits = 0;
};

// Returns the images of a chat request's messages, in order of appearance. The identifier of an
// item is its uuid as it is sent (the digits of a number), or else a digest of its bytes. An item
// without bytes must be in the cache. Only data: URLs are read, because simulated engines have no
// network. Errors: as vLLM answers.
Result<std::vector<MediaInput>> read_media(const json::Value& messages,
                                           const processor::Checkpoint& checkpoint,
                                           ProcessorCache& cache);

// Decodes strict base64 (RFC 4648). Errors: as vLLM answers.
Result<std::string> decode_base64(std::string_view text);

}  // namespace sightline::api
