// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"

#include "router/keys/block_key.h"

namespace sightline::index {

// Removals remembered, of all engines together: 6 MB, taken at once, so that memory does not creep
// up for hours and no reader ever waits for a larger ring to be copied.
inline constexpr std::size_t kRemovalsMax = 1U << 18U;

// The latest removals from an index, in their order, so that it can be asked afterwards whether
// blocks that were claimed at some moment have been withdrawn since.
//
// A removal is written after the index has it, and a position is read before the index is asked:
// whatever was claimed at a position and is withdrawn later stands behind that position.
// Thread safety: all methods from any thread.
class RemovalJournal {
 public:
  explicit RemovalJournal(std::size_t removals_max = kRemovalsMax);

  // The number of removals written so far.
  [[nodiscard]] std::uint64_t position() const { return position_.load(std::memory_order_acquire); }

  void removed(EngineId engine, std::span<const keys::BlockKey> blocks);
  // All blocks of the engine at once.
  void dropped(EngineId engine);

  // True if one of the blocks was withdrawn from the engine after the position and before the call,
  // or all of them. Nothing: more removals came since than are remembered. Whoever writes waits for
  // some microseconds at most.
  [[nodiscard]] std::optional<bool> withdrawn_since(std::uint64_t position, EngineId engine,
                                                    std::span<const keys::BlockKey> blocks) const;

 private:
  struct Removal {
    EngineId engine;
    std::optional<keys::BlockKey> block;  // nothing: all blocks
  };
  void write(const Removal& removal);

  mutable std::mutex mutex_;   // guards the ring and every change of the position
  std::vector<Removal> ring_;  // the removal at position p stands at p modulo its size
  std::atomic<std::uint64_t> position_{0};
};

}  // namespace sightline::index
