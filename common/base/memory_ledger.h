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

// What the bytes of a process that others make it hold are for.
enum class MemoryShare : std::uint8_t {
  Requests,     // of clients, frontends and the admin port: bodies, what is read of them, prompts
  Answers,      // of engines, as far as they wait in memory for clients
  Connections,  // buffers of connections
  Media,        // downloaded pictures
  Events,       // KV events that wait
  TokenCache,   // token ids of recent text
  Index,        // who holds which block, and the engines' own names of blocks
};
inline constexpr std::array kMemoryShares = {
    MemoryShare::Requests, MemoryShare::Answers,    MemoryShare::Connections, MemoryShare::Media,
    MemoryShare::Events,   MemoryShare::TokenCache, MemoryShare::Index};
// "requests", "token_cache", …: metric label.
std::string_view name_of(MemoryShare share);

// The most that each share may have, in bytes, in the order of kMemoryShares.
using MemoryBounds = std::array<std::size_t, kMemoryShares.size()>;

// All bytes that clients, engines and peers make a process hold: one bound, and within it that of
// each share. The bounds of the shares may be more than the whole together: what one does not use
// another has. Of the whole, and of the requests' share, a part is kept for small claims.
// Thread safety: as ByteBudget.
class MemoryLedger {
 public:
  // `whole` is 1 MiB at least.
  MemoryLedger(std::size_t whole, const MemoryBounds& bounds);

  [[nodiscard]] ByteBudget& share(MemoryShare share) {
    return shares_[static_cast<std::size_t>(share)];
  }
  [[nodiscard]] const ByteBudget& share(MemoryShare share) const {
    return shares_[static_cast<std::size_t>(share)];
  }
  [[nodiscard]] const ByteBudget& whole() const { return whole_; }
  // Another bound of a share, as far as it fits (fitting_bound).
  void set_bound(MemoryShare share, std::size_t wanted);

 private:
  ByteBudget whole_;
  std::array<ByteBudget, kMemoryShares.size()> shares_;
};

// Of a bound of so many bytes, what is kept for small claims.
std::size_t kept_for_small(std::size_t bytes_max);

// What a share gets of a ledger of `whole` bytes when it wants `wanted`: no more than its part, so
// that those that hold for long leave room for requests.
std::size_t fitting_bound(std::size_t whole, MemoryShare share, std::size_t wanted);
MemoryBounds fitting_bounds(std::size_t whole, const MemoryBounds& wanted);

// The error of a claim that `budget` refused. TooLarge where so many bytes can never be had, else
// Overloaded; it names the limit of the budget, or of the parent, that has no room. `what` is the
// subject: "the request's body".
Error memory_error(const ByteBudget& budget, std::size_t bytes, Claim claim, std::string_view what);

// The same of a claim of a holder.
Error memory_error(const HeldBytes& holder, std::size_t bytes, std::string_view what);

}  // namespace sightline
