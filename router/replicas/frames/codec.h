// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/result.h"

#include "router/replicas/frames/message.h"

namespace sightline::frames {

// Limits on one message; far above what agents and routers send.
inline constexpr std::size_t kMessageBytesMax = 64U << 20U;  // the most that a NATS server takes
inline constexpr std::size_t kNameBytesMax = 255;            // workers, readers, instances
inline constexpr std::size_t kSentenceBytesMax = 1'024;      // longer ones are cut when encoded
inline constexpr std::size_t kChunksPerAskMax = 64;
// What a frame or chunk takes beside its operations, a beat with the longest texts included.
inline constexpr std::size_t kFrameOverheadBytesMax = 2'048;

// Integers little-endian, lengths in front of what they count. A Clear's `held` is not sent.
// Names are at most kNameBytesMax, chunks of an ask kChunksPerAskMax.
std::string encode(const Message& message);

// Nothing is allocated before its bytes are there: a message takes at most some 8 times its size.
// Errors: Corrupt (not a message, or bytes behind it), TooLarge; blamed on the worker.
Result<Message> decode(std::string_view bytes);

// What the operation takes in a frame or chunk.
std::size_t encoded_bytes(const operations::Operation& operation);
// Bytes of an operation without its keys, and of each of these.
inline constexpr std::size_t kOperationBytes = 15;
inline constexpr std::size_t kKeyBytes = 8;

}  // namespace sightline::frames
