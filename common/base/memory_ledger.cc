// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/memory_ledger.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"

namespace sightline {
namespace {

// An eighth is reserved for Small claims. 64 MiB at most, room for a thousand of middle size.
constexpr std::size_t kKeptPart = 8;
constexpr std::size_t kKeptBytesMax = std::size_t{64} << 20U;

struct ShareRow {
  std::string_view name;
  std::string_view limit;  // which errors name
  std::size_t parts;       // the most of kParts that it may have
};
constexpr std::size_t kParts = 16;

// In the order of kMemoryShares. Shares that hold data for long (caches, the index) get less than
// half.
constexpr std::array<ShareRow, kMemoryShares.size()> kRows = {{
    {"requests", "total-body-bytes-max", 12},
    {"answers", "memory-bytes-max", 4},
    {"connections", "memory-bytes-max", 2},
    {"media", "media-held-bytes-max", 6},
    {"events", "events-held-bytes-max", 2},
    {"token_cache", "token-cache-bytes-max", 2},
    {"index", "memory-bytes-max", 4},
}};
constexpr std::string_view kWholeLimit = "memory-bytes-max";

const ShareRow& row_of(MemoryShare share) { return kRows[static_cast<std::size_t>(share)]; }

ByteBudget share_of(ByteBudget& whole, MemoryShare share, std::size_t bound) {
  return ByteBudget(
      bound, {.parent = &whole,
              .kept_for_small_bytes = share == MemoryShare::Requests ? kept_for_small(bound) : 0,
              .limit = row_of(share).limit});
}

// The first of a budget and its parents with fewer than `bytes` left (at_all: in total), else the
// last.
const ByteBudget& tightest(const ByteBudget& budget, std::size_t bytes, Claim claim, bool at_all) {
  const ByteBudget* level = &budget;
  for (; level->parent() != nullptr; level = level->parent()) {
    const std::size_t most = level->most_here(claim);
    const std::size_t taken = at_all ? 0 : std::min(most, level->held());
    if (bytes > most - taken) break;
  }
  return *level;
}

template <std::size_t... kAt>
std::array<ByteBudget, sizeof...(kAt)> shares_of(ByteBudget& whole, const MemoryBounds& bounds,
                                                 std::index_sequence<kAt...>) {
  return {share_of(whole, kMemoryShares[kAt], bounds[kAt])...};
}

}  // namespace

std::string_view name_of(MemoryShare share) { return row_of(share).name; }

std::size_t kept_for_small(std::size_t bytes_max) {
  return std::min(bytes_max / kKeptPart, kKeptBytesMax);
}

MemoryLedger::MemoryLedger(std::size_t whole, const MemoryBounds& bounds)
    : whole_(whole, {.kept_for_small_bytes = kept_for_small(whole), .limit = kWholeLimit}),
      shares_(shares_of(whole_, bounds, std::make_index_sequence<kMemoryShares.size()>())) {
  // Below this size even one Small claim could not fit.
  SL_CHECK(whole >= kSmallBytesMax);
}

void MemoryLedger::set_bound(MemoryShare share, std::size_t wanted) {
  this->share(share).set_bytes_max(fitting_bound(whole_.bytes_max(), share, wanted));
}

std::size_t fitting_bound(std::size_t whole, MemoryShare share, std::size_t wanted) {
  return std::min(wanted, whole / kParts * row_of(share).parts);
}

MemoryBounds fitting_bounds(std::size_t whole, const MemoryBounds& wanted) {
  MemoryBounds fitting{};
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    fitting[i] = fitting_bound(whole, kMemoryShares[i], wanted[i]);
  }
  return fitting;
}

Error memory_error(const ByteBudget& budget, std::size_t bytes, Claim claim,
                   std::string_view what) {
  // A client must not retry what can never fit, so TooLarge and Overloaded differ here.
  const bool is_never = bytes > budget.most(claim);
  const ByteBudget& full = tightest(budget, bytes, claim, is_never);
  const std::string limit(full.limit());
  const std::string most = std::to_string(full.bytes_max());
  if (is_never) {
    return limit_error(ErrorCode::TooLarge, limit,
                       std::string(what) + " needs " + std::to_string(bytes) +
                           " bytes of memory, more than one request may use of the " + most +
                           " that " + limit + " allows");
  }
  return overload_error(
      limit, std::string(what) + " has no room in the " + most + " bytes of memory that all share");
}

Error memory_error(const HeldBytes& holder, std::size_t bytes, std::string_view what) {
  const ByteBudget& budget = *holder.budget();
  const std::size_t together = holder.bytes() + bytes;
  // A holder that grows fails for ever if its total exceeds the maximum, not only the new bytes.
  const bool is_never = together > budget.most(holder.claim());
  return memory_error(budget, is_never ? together : bytes, holder.claim(), what);
}

}  // namespace sightline
