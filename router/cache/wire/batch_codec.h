// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>

#include "common/base/bytes.h"
#include "common/base/result.h"

#include "router/cache/wire/kv_event.h"

namespace sightline::wire {

// Limits on one payload; far above what engines send.
inline constexpr std::size_t kPayloadBytesMax = 64U << 20U;
inline constexpr std::size_t kNestingMax = 8;
inline constexpr std::size_t kEventsPerBatchMax = 1U << 16U;
inline constexpr std::size_t kTokensPerEventMax = 1U << 22U;
// Of all events together. A value takes a byte of the payload and up to 56 bytes of memory: these
// keep a batch below 300 MB, whatever its bytes say.
inline constexpr std::size_t kBlocksPerBatchMax = 1U << 20U;
inline constexpr std::size_t kTokensPerBatchMax = 1U << 23U;
inline constexpr std::size_t kExtrasPerBatchMax = 1U << 20U;
inline constexpr std::size_t kMediaPerBlockMax = 1U << 12U;
inline constexpr std::size_t kTextBytesMax = 4096;  // identifiers, salts, LoRA names

// Decodes the payload of one message of a KV event publisher (msgpack), in the form that vLLM has
// made and SGLang took over. The format is told from the bytes, never from a version: events as
// arrays (vLLM 0.9 to 0.23, SGLang) and as maps (vLLM from 0.24, keys in any order), hashes as
// integers or bytes, every shape of extra_keys up to vLLM 0.32. Further array elements are ignored,
// but for a map of named fields (SGLang).
//
// Named fields of a store that this build does not know: what is empty (nil, arrays of that) is
// ignored. Any other is noted, as it may mean what nobody has thought of; and where its name says
// that it may name the content (salt, adapter, media, namespace and the like), the content is
// unclear. The rest is ignored: engines add fields for attribution, and a store without a name for
// its content is the same store.
// Errors: Corrupt (not a batch at all), TooLarge, both blamed on the worker. A single broken
// event in a sound batch becomes a MalformedEvent.
Result<EventBatch> decode_batch(ByteView payload);

}  // namespace sightline::wire
