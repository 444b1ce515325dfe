// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "router/replicas/frames/message.h"
#include "router/replicas/publisher/block_list.h"

namespace sightline::publisher {

// Writes blocks, in their order, as the chunks of a dump. Blocks that follow each other in one
// prompt and are held on the same tiers become one store for each tier. Thread safety: none.
class ChunkWriter {
 public:
  // chunk_bytes: of an encoded chunk, at most; above frames::kFrameOverheadBytesMax + 64.
  ChunkWriter(frames::StreamName stream, std::uint64_t dump, std::size_t chunk_bytes);

  void add(const Block& block);
  // No more comes: the last chunk is written.
  void finish();

  [[nodiscard]] std::vector<std::string> take_chunks() { return std::move(chunks_); }
  // Of the operations of all chunks in their order.
  [[nodiscard]] std::uint64_t checksum() const { return checksum_.value(); }

 private:
  void end_run();
  void put(operations::Store store);
  void end_chunk();

  frames::StreamName stream_;
  std::uint64_t dump_;
  std::size_t operation_bytes_max_;  // of a chunk
  std::size_t run_keys_max_;
  std::uint8_t run_tiers_ = 0;
  operations::Store run_;
  std::vector<operations::Operation> operations_;
  std::size_t operation_bytes_ = 0;
  std::vector<std::string> chunks_;
  frames::Checksum checksum_;
};

}  // namespace sightline::publisher
