// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/index/indexed_cache.h"

#include <utility>
#include <variant>

namespace sightline::index {

void IndexedCache::take(const operations::CacheName& /*cache*/,
                        const operations::Operation& operation) {
  // The index comes before the journal: see the class.
  if (reclaim_ == Reclaim::Later && std::holds_alternative<operations::Clear>(operation)) {
    index_.clear_later(cache_);
  } else {
    index_.apply(cache_, operation);
  }
  if (std::holds_alternative<operations::Store>(operation)) {
    holds_ = true;
  } else if (const auto* removed = std::get_if<operations::Remove>(&operation)) {
    if (journal_ != nullptr) journal_->removed(cache_, removed->keys);
  } else if (std::exchange(holds_, false) && journal_ != nullptr) {
    journal_->dropped(cache_);
  }
}

}  // namespace sightline::index
