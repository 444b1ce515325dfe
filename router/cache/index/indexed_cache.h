// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/ids.h"

#include "router/cache/index/prefix_index.h"
#include "router/cache/index/removal_journal.h"
#include "router/cache/operations/operation.h"

namespace sightline::index {

// When the memory of what was cleared is given back: before take() returns, or in steps by whoever
// calls IndexWriter::reclaim_some().
enum class Reclaim : std::uint8_t { Now, Later };

// Puts what happens to one cache into an index, and then what it lost into the journal: a removal
// is in the journal after the index has it. Clearing what holds nothing is no loss.
// Thread safety: none. Index and journal outlive it.
class IndexedCache : public operations::OperationSink {
 public:
  IndexedCache(CacheId cache, IndexWriter& index, RemovalJournal* journal = nullptr,
               Reclaim reclaim = Reclaim::Now)
      : cache_(cache), index_(index), journal_(journal), reclaim_(reclaim) {}

  void take(const operations::CacheName& cache, const operations::Operation& operation) override;

 private:
  const CacheId cache_;
  IndexWriter& index_;
  RemovalJournal* const journal_;  // null: nobody asks
  const Reclaim reclaim_;
  bool holds_ = false;  // blocks were stored since the last clear
};

}  // namespace sightline::index
