// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/byte_budget.h"
#include "common/base/error.h"

namespace sightline {

// What the bytes are for that clients, engines and peers make a process hold.
enum class MemoryShare : std::uint8_t {
  // Of clients, frontends and the admin port: bodies, the data parsed from them, prompts.
  Requests,
  // Of engines: answers that wait in memory for clients.
  Answers,
  // The buffers of connections.
  Connections,
  // Downloaded images.
  Media,
  // KV events that wait.
  Events,
  // The token ids of recent text.
  TokenCache,
  // Which rank holds which block, and the engines' own names of blocks.
  Index,
};
inline constexpr std::array kMemoryShares = {
    MemoryShare::Requests, MemoryShare::Answers,    MemoryShare::Connections, MemoryShare::Media,
    MemoryShare::Events,   MemoryShare::TokenCache, MemoryShare::Index};
// "requests", "token_cache" and so on: metric label.
std::string_view name_of(MemoryShare share);

// The maximum of each share in bytes, in the order of kMemoryShares.
using MemoryBounds = std::array<std::size_t, kMemoryShares.size()>;

// All bytes that clients, engines and peers make a process hold. One limit applies to the whole,
// and one to each share. The limits of the shares may add up to more than the whole: one share may
// use what another leaves. Part of the whole, and of the share of requests, is reserved for Small
// claims.
// Thread safety: see ByteBudget.
class MemoryLedger {
 public:
  // `whole` and `bounds` are in bytes. `whole` is at least 1 MiB, which SL_CHECK enforces.
  MemoryLedger(std::size_t whole, const MemoryBounds& bounds);

  [[nodiscard]] ByteBudget& share(MemoryShare share) {
    return shares_[static_cast<std::size_t>(share)];
  }
  [[nodiscard]] const ByteBudget& share(MemoryShare share) const {
    return shares_[static_cast<std::size_t>(share)];
  }
  [[nodiscard]] const ByteBudget& whole() const { return whole_; }
  // Changes the limit of a share, as fitting_bound() allows.
  void set_bound(MemoryShare share, std::size_t wanted);

 private:
  ByteBudget whole_;
  std::array<ByteBudget, kMemoryShares.size()> shares_;
};

// How many bytes a budget of bytes_max reserves for Small claims.
std::size_t kept_for_small(std::size_t bytes_max);

// The limit, in bytes, that a share gets in a ledger of `whole` bytes if it wants `wanted`. Each
// share has a maximum part of the whole: data that stays for long (caches, the index) must leave
// room for requests.
std::size_t fitting_bound(std::size_t whole, MemoryShare share, std::size_t wanted);
MemoryBounds fitting_bounds(std::size_t whole, const MemoryBounds& wanted);

// The error of a claim that `budget` refused: TooLarge if the budget can never hold so many bytes,
// else Overloaded. It names the limit of the budget or parent that has no room. `what` is the
// subject, for example "the request's body".
Error memory_error(const ByteBudget& budget, std::size_t bytes, Claim claim, std::string_view what);

// The same for a claim of a holder. TooLarge also counts the bytes that it has already.
Error memory_error(const HeldBytes& holder, std::size_t bytes, std::string_view what);

}  // namespace sightline
