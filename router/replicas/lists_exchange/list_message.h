// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"

// Messages between routers about pushed lists of workers. They are sealed, so all senders have the
// same key, scope and revision.
namespace sightline::lists_exchange {

// A question to all: which list was pushed to you? Or to one router: send the list from this byte
// on.
struct ListAsk {
  // The asker's instance. The answer goes to it.
  std::uint64_t asker = 0;
  // Random, drawn for this question. The answer repeats it.
  std::uint64_t nonce = 0;
  // The asked instance. 0: all, and each replies with ListReply.
  std::uint64_t of = 0;
  // In a question to one router: the generation of the wanted list.
  std::uint64_t generation = 0;
  // The first wanted byte.
  std::uint32_t offset = 0;
  // Rises with each question of the asker, from 1 on.
  std::uint64_t number = 0;

  bool operator==(const ListAsk&) const = default;
};

// The answer to a question to all.
struct ListReply {
  // Of the router that answers.
  std::uint64_t instance = 0;
  // Of the question.
  std::uint64_t nonce = 0;
  // 0: no list was pushed.
  std::uint64_t generation = 0;
  // Differs between different lists.
  std::uint64_t digest = 0;
  // Size of the pushed body.
  std::uint32_t bytes = 0;

  bool operator==(const ListReply&) const = default;
};

// The answer to a question to one router.
struct ListChunk {
  std::uint64_t instance = 0;
  std::uint64_t nonce = 0;
  std::uint64_t generation = 0;
  // Of the first byte in the body.
  std::uint32_t offset = 0;
  std::string bytes;

  bool operator==(const ListChunk&) const = default;
};

// The index of a message is its first byte on the wire.
using Message = std::variant<ListAsk, ListReply, ListChunk>;

// The most bytes of a list in a ListChunk. NATS servers take messages of 1 MiB by default.
inline constexpr std::size_t kPartBytesMax = 256 << 10;
// What encode() adds to the bytes of a ListChunk: kind, instance, nonce, generation and offset.
inline constexpr std::size_t kPartHeadBytes = 1 + 3 * sizeof(std::uint64_t) + sizeof(std::uint32_t);

// Integers are little-endian. The bytes of a ListChunk have no length: they are the rest of the
// message.
std::string encode(const Message& message);
// Reads what encode() wrote. Error: Corrupt, blamed on the worker.
Result<Message> decode(std::string_view bytes);

}  // namespace sightline::lists_exchange
