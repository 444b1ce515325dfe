// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/result.h"

#include "router/replicas/frames/stream_message.h"

namespace sightline::frames {

// The most bytes of a message: the largest `max_payload` that a NATS server can have. This limit
// and the following ones are far above what agents and routers send.
inline constexpr std::size_t kMessageBytesMax = 64U << 20U;
// Names of workers, readers and agents.
inline constexpr std::size_t kNameBytesMax = 255;
// The reason in a beat. encode() cuts a longer one.
inline constexpr std::size_t kSentenceBytesMax = 1'024;
// The chunks that one ChunkAsk can name.
inline constexpr std::size_t kChunksPerAskMax = 64;
// The most that a frame or chunk takes beside its operations. It includes a beat with the longest
// texts.
inline constexpr std::size_t kFrameOverheadBytesMax = 2'048;

// Returns the wire form of a message. Integers are little-endian, and lengths come before what they
// count. The first byte is the kind of the body, its index in Body. The stream's name follows, then
// the body. A Clear's `held` is not sent.
// The caller keeps names within kNameBytesMax and a ChunkAsk within kChunksPerAskMax. Longer ones
// are a bug (SL_CHECK).
std::string encode(const Message& message);

// Reads what encode() wrote. It allocates nothing before the bytes for it are there. So a message
// takes about 8 times its size in memory, at most.
// Errors: Corrupt if the bytes are no message or more bytes follow it, TooLarge above
// kMessageBytesMax. Both blame the worker and are not worth a retry.
Result<Message> decode(std::string_view bytes);

// Returns the most bytes that the operation takes in a frame or chunk. It is exact for a Store.
std::size_t encoded_bytes(const operations::Operation& operation);
// The bytes of a Store without its keys: kind, tier, flag, parent and count. Other operations take
// less.
inline constexpr std::size_t kOperationBytes = 15;
// The bytes of each key.
inline constexpr std::size_t kKeyBytes = 8;

}  // namespace sightline::frames
