// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <utility>

#include "router/cache/events/event_feed.h"
#include "router/cache/events/normaliser.h"
#include "router/cache/index/indexed_cache.h"
#include "router/engine/vllm/vllm.h"

namespace sightline::test {

// Uses vLLM's format unless the options name another.
inline events::NormaliserOptions with_family(events::NormaliserOptions options) {
  if (options.format == nullptr) options.format = &vllm::vllm();
  return options;
}

struct OwnSink {
  index::IndexedCache sink;
};

// A normaliser whose operations go into an index and a journal.
class IndexedNormaliser : OwnSink, public events::Normaliser {
 public:
  IndexedNormaliser(events::NormaliserOptions options, const keys::Scheme& scheme,
                    index::IndexWriter& index, index::RemovalJournal* journal = nullptr)
      : OwnSink{index::IndexedCache(options.id, index, journal)},
        Normaliser(with_family(std::move(options)), scheme, sink) {}
};

// The same for all messages of an engine.
class IndexedFeed : OwnSink, public events::EventFeed {
 public:
  IndexedFeed(events::NormaliserOptions options, events::StreamOptions stream,
              const keys::Scheme& scheme, index::IndexWriter& index)
      : OwnSink{index::IndexedCache(options.id, index)},
        EventFeed(with_family(std::move(options)), stream, scheme, sink) {}
};

}  // namespace sightline::test
