// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <new>

#include "router/cache/index/prefix_index.h"

namespace sightline::test {

// An index whose memory runs out after an operation, as often as the test says.
// Thread safety: as the index behind it, which outlives it.
class ScarceIndex : public index::IndexWriter {
 public:
  explicit ScarceIndex(index::IndexWriter& inner) : inner_(inner) {}

  // One more operation runs out.
  void fail_next() { ++failures_; }
  // From now on it always runs out, or never.
  void fail_always(bool always) { always_ = always; }
  // True when all failures of fail_next() have happened.
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
