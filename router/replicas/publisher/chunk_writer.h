// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "router/replicas/frames/stream_message.h"
#include "router/replicas/publisher/block_list.h"

namespace sightline::publisher {

// Writes blocks, in their order, as the chunks of a dump. Consecutive blocks of one prompt on the
// same tiers are written as one Store for each tier.
// Thread safety: one thread at a time.
class ChunkWriter {
 public:
  // chunk_bytes is the most that an encoded chunk takes. It must be above
  // frames::kFrameOverheadBytesMax + 64.
  ChunkWriter(frames::StreamName stream, std::uint64_t dump, std::size_t chunk_bytes);

  // Adds the next block.
  void add(const ListedBlock& block);
  // Ends the last chunk. No add() may follow.
  void finish();

  // Returns the encoded chunks, once, after finish().
  [[nodiscard]] std::vector<std::string> take_chunks() { return std::move(chunks_); }
  // The checksum over the operations of all chunks in their order.
  [[nodiscard]] std::uint64_t checksum() const { return checksum_.value(); }

 private:
  // Writes the run of blocks collected so far.
  void end_run();
  // Adds a store to the chunk. If it does not fit, it begins the next one.
  void put(operations::Store store);
  // Encodes the operations collected so far as a chunk.
  void end_chunk();

  frames::StreamName stream_;
  std::uint64_t dump_;
  // The most bytes of operations in a chunk.
  std::size_t operation_bytes_max_;
  // The most keys in a store.
  std::size_t run_keys_max_;
  // The tiers of the blocks in run_.
  std::uint8_t run_tiers_ = 0;
  operations::Store run_;
  std::vector<operations::Operation> operations_;
  std::size_t operation_bytes_ = 0;
  std::vector<std::string> chunks_;
  frames::Checksum checksum_;
};

}  // namespace sightline::publisher
