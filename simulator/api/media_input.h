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

// One picture of a request as the engine names it.
struct MediaInput {
  std::string identifier;
  std::uint32_t tokens = 0;
};

// The processor cache of one engine, by identifier. vLLM 0.32 mirrors it in every API server; an
// item that is in it wins over bytes sent with the same uuid.
struct ProcessorCache {
  explicit ProcessorCache(std::uint64_t bytes) : items(bytes), enabled(bytes > 0) {}
  core::MediaCache items;
  const bool enabled;
  std::uint64_t queries = 0;
  std::uint64_t hits = 0;
};

// The pictures of a chat request's messages, in order of appearance. An item's identifier is its
// uuid verbatim (a number as its digits), else a digest of its bytes; without bytes the item must
// be in the cache. Only data: URLs are read: simulated engines have no network. Errors: as vLLM
// answers.
Result<std::vector<MediaInput>> read_media(const json::Value& messages,
                                           const processor::Checkpoint& checkpoint,
                                           ProcessorCache& cache);

// Strict base64 (RFC 4648). Errors: as vLLM answers.
Result<std::string> decode_base64(std::string_view text);

}  // namespace sightline::api
