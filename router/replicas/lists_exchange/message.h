// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/result.h"

// What routers say to each other about lists of workers that were pushed. Sealed, so all who are
// heard have the same key, scope and revision.
namespace sightline::lists_exchange {

// "Which list was pushed to you?", or, of one router, "tell me of it from this byte on".
struct Ask {
  std::uint64_t asker = 0;       // its instance, to which the answer goes
  std::uint64_t nonce = 0;       // drawn for this question: an answer names it
  std::uint64_t of = 0;          // the instance that is asked; 0: everybody, who answers with Held
  std::uint64_t generation = 0;  // of the list that is wanted, of one router
  std::uint32_t offset = 0;      // likewise
  std::uint64_t number = 0;      // counts up with each question of the asker, from 1 on

  bool operator==(const Ask&) const = default;
};

struct Held {
  std::uint64_t instance = 0;    // who answers
  std::uint64_t nonce = 0;       // of the question
  std::uint64_t generation = 0;  // 0: none was pushed
  std::uint64_t digest = 0;      // tells one list from another
  std::uint32_t bytes = 0;       // of the body that was pushed

  bool operator==(const Held&) const = default;
};

struct Part {
  std::uint64_t instance = 0;
  std::uint64_t nonce = 0;
  std::uint64_t generation = 0;
  std::uint32_t offset = 0;  // of these bytes in the body
  std::string bytes;

  bool operator==(const Part&) const = default;
};

using Message = std::variant<Ask, Held, Part>;

// Of a Part; NATS takes 1 MiB unless a server is told otherwise.
inline constexpr std::size_t kPartBytesMax = 256 << 10;
// What encode() adds to the bytes of a Part.
inline constexpr std::size_t kPartHeadBytes = 1 + 3 * sizeof(std::uint64_t) + sizeof(std::uint32_t);

std::string encode(const Message& message);
// Error: Corrupt.
Result<Message> decode(std::string_view bytes);

}  // namespace sightline::lists_exchange
