// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/chunk_writer.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

#include "router/replicas/frames/stream_codec.h"

namespace sightline::publisher {

namespace {

// A longer run is cut. A store is not split over two chunks, so a long one could leave most of a
// chunk empty.
constexpr std::size_t kRunKeysMax = 1'024;

}  // namespace

ChunkWriter::ChunkWriter(frames::StreamName stream, std::uint64_t dump, std::size_t chunk_bytes)
    : stream_(std::move(stream)), dump_(dump) {
  // Below it, a chunk would have no room for a store with some keys.
  SL_CHECK(chunk_bytes > frames::kFrameOverheadBytesMax + 64);
  operation_bytes_max_ = chunk_bytes - frames::kFrameOverheadBytesMax;
  run_keys_max_ =
      std::min(kRunKeysMax, (operation_bytes_max_ - frames::kOperationBytes) / frames::kKeyBytes);
}

void ChunkWriter::add(const ListedBlock& block) {
  const bool is_next = !run_.keys.empty() && run_.keys.size() < run_keys_max_ &&
                       block.tiers == run_tiers_ && block.parent == run_.keys.back();
  if (!is_next) {
    // The next block of the run names its parent itself. After a cut, it is the last key of the
    // store before.
    end_run();
    run_.parent = block.parent;
    run_tiers_ = block.tiers;
  }
  run_.keys.push_back(block.key);
}

void ChunkWriter::finish() {
  end_run();
  end_chunk();
}

void ChunkWriter::end_run() {
  if (run_.keys.empty()) return;
  for (std::uint32_t tier = 0; tier < operations::kTierCount; ++tier) {
    if ((run_tiers_ >> tier & 1U) == 0) continue;
    run_.tier = static_cast<operations::Tier>(tier);
    put(run_);
  }
  run_.keys.clear();
}

void ChunkWriter::put(operations::Store store) {
  operations::Operation operation = std::move(store);
  const std::size_t bytes = frames::encoded_bytes(operation);
  if (operation_bytes_ + bytes > operation_bytes_max_) end_chunk();
  checksum_.add(operation);
  operation_bytes_ += bytes;
  operations_.push_back(std::move(operation));
}

void ChunkWriter::end_chunk() {
  if (operations_.empty()) return;
  frames::DumpChunk chunk{.dump = dump_,
                          .chunk = static_cast<std::uint32_t>(chunks_.size()),
                          .operations = std::exchange(operations_, {})};
  chunks_.push_back(frames::encode({.stream = stream_, .body = std::move(chunk)}));
  chunks_.back().shrink_to_fit();  // it is kept for a while, and was grown in doubling steps
  operation_bytes_ = 0;
}

}  // namespace sightline::publisher
