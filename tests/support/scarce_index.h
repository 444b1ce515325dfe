// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <new>

#include "router/cache/index/prefix_index.h"

namespace sightline::test {

// An index whose memory runs out behind an operation, as often as it is told to.
// Thread safety: as the index behind it, which outlives it.
class ScarceIndex : public index::IndexWriter {
 public:
  explicit ScarceIndex(index::IndexWriter& inner) : inner_(inner) {}

  void fail_next() { ++failures_; }
  // From now on it always does, or no more.
  void fail_always(bool always) { always_ = always; }
  [[nodiscard]] bool has_failed() const { return failures_ == 0; }

  void apply(CacheId cache, const operations::Operation& operation) override {
    inner_.apply(cache, operation);
    if (always_) throw std::bad_alloc();
    if (failures_ == 0) return;
    --failures_;
    throw std::bad_alloc();
  }
  void clear_later(CacheId cache) override { inner_.clear_later(cache); }
  bool reclaim_some() override { return inner_.reclaim_some(); }

 private:
  index::IndexWriter& inner_;
  std::atomic<int> failures_ = 0;
  std::atomic<bool> always_ = false;
};

}  // namespace sightline::test
