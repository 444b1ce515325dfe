// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/ids.h"

#include "router/cache/index/prefix_index.h"
#include "router/cache/index/removal_journal.h"
#include "router/cache/operations/operation.h"

namespace sightline::index {

// When the memory of cleared blocks is freed. Now: before take() returns. Later: in steps, by the
// caller of IndexWriter::reclaim_some().
enum class Reclaim : std::uint8_t { Now, Later };

// Applies the operations of one cache to an index, then records its losses in the journal. The
// order matters: a removal is in the journal only after the index has applied it. To clear an empty
// cache is no loss.
// Thread safety: one thread at a time. Index and journal outlive it.
class IndexedCache : public operations::OperationSink {
 public:
  // Without a journal, no removals are recorded.
  IndexedCache(CacheId cache, IndexWriter& index, RemovalJournal* journal = nullptr,
               Reclaim reclaim = Reclaim::Now)
      : cache_(cache), index_(index), journal_(journal), reclaim_(reclaim) {}

  // Applies one operation. It ignores the name, because the CacheId selects the cache.
  void take(const operations::CacheName& cache, const operations::Operation& operation) override;

 private:
  const CacheId cache_;
  IndexWriter& index_;
  // Null: no removals are recorded.
  RemovalJournal* const journal_;
  const Reclaim reclaim_;
  // Blocks were stored since the last clear. Without them, a clear is not recorded.
  bool holds_ = false;
};

}  // namespace sightline::index
