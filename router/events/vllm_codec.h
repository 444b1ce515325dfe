// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "router/events/kv_event.h"

namespace sightline::events {

// Limits on one payload; far above what engines send.
inline constexpr std::size_t kPayloadBytesMax = 64U << 20U;
inline constexpr std::size_t kNestingMax = 8;
inline constexpr std::size_t kEventsPerBatchMax = 1U << 16U;
inline constexpr std::size_t kTokensPerEventMax = 1U << 22U;
inline constexpr std::size_t kMediaPerBlockMax = 1U << 12U;
inline constexpr std::size_t kTextBytesMax = 4096;  // identifiers, salts, LoRA names

// Decodes the payload of one message of a KV event publisher (msgpack). The format is told from
// the bytes, never from a version: events as arrays (vLLM 0.9 to 0.23, SGLang) and as maps (vLLM
// from 0.24, keys in any order), hashes as integers or bytes, every shape of extra_keys up to
// vLLM 0.32. Unknown fields and further array elements are ignored.
// Errors: Corrupt (not a batch at all), TooLarge, both blamed on the worker. A single broken
// event in a sound batch becomes a MalformedEvent.
Result<EventBatch> decode_vllm_batch(ByteView payload);

}  // namespace sightline::events
