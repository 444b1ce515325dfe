// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "router/cache/wire/kv_event.h"

namespace sightline::wire {

// Limits on one payload, far above what engines send.
inline constexpr std::size_t kPayloadBytesMax = 64U << 20U;
inline constexpr std::size_t kNestingMax = 8;
inline constexpr std::size_t kEventsPerBatchMax = 1U << 16U;
inline constexpr std::size_t kTokensPerEventMax = 1U << 22U;
// Limits on all events of a batch together. A value takes one byte of the payload and up to 56
// bytes of memory. These limits keep any batch below 300 MB.
inline constexpr std::size_t kBlocksPerBatchMax = 1U << 20U;
inline constexpr std::size_t kTokensPerBatchMax = 1U << 23U;
inline constexpr std::size_t kExtrasPerBatchMax = 1U << 20U;
inline constexpr std::size_t kMediaPerBlockMax = 1U << 12U;
// For identifiers, salts and LoRA names.
inline constexpr std::size_t kTextBytesMax = 4096;

// Decodes the payload of one message of a KV event publisher (msgpack). vLLM made this form, and
// SGLang uses it too. The decoder finds the format in the bytes and never looks at a version. It
// reads:
// - events as arrays (vLLM 0.9 to 0.23, SGLang) and as maps with keys in any order (vLLM from
//   0.24),
// - hashes as integers or as bytes,
// - every shape of extra_keys up to vLLM 0.32.
//
// It ignores further array elements, except a map of named fields (SGLang).
//
// A store may have named fields that this build does not know. An empty one (nil, or arrays of nil)
// is ignored. Any other sets BlockStored::unknown_field, because it may change the meaning. If its
// name suggests that it names the content (salt, adapter, media, namespace and the like), it also
// sets `unclear`. Other fields do not make the content unclear, because engines add fields for
// attribution that do not change the store.
// Errors: Corrupt if the payload is no batch at all, and TooLarge. Both blame the worker. A single
// broken event in a sound batch becomes a MalformedEvent.
Result<EventBatch> decode_batch(ByteView payload);

}  // namespace sightline::wire
