// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/contract/worker_spec.h"

#include "router/cache/content/adapters.h"
#include "router/cache/operations/facts.h"
#include "router/workers/fleet/block_size.h"

namespace sightline::fleet {

// Where an engine core publishes its KV events, as seen from here.
struct EventEndpoints {
  std::string events;     // ZMQ endpoint to subscribe at: "tcp://10.0.0.7:5557"
  bool bind = false;      // the worker connects to it: we bind
  std::string replay;     // ZMQ endpoint of the replay socket, empty: no replay
  bool by_agent = false;  // none of these: its agent tells what it holds

  bool operator==(const EventEndpoints&) const = default;
};

// A data-parallel rank as it is found behind a worker's URL.
struct FoundRank {
  std::uint32_t number = 0;              // as the engine counts
  std::optional<EventEndpoints> events;  // nothing: not known

  bool operator==(const FoundRank&) const = default;
};

// The events of the same ranks come from the same places, and are told apart alike: those of a
// worker's only rank may state any rank.
bool same_events(const std::vector<FoundRank>& a, const std::vector<FoundRank>& b);

// The KV events of one rank, and what they tell of its cache.
struct Feed {
  CacheId cache;  // another one when the feed begins anew
  EventEndpoints endpoints;
  std::string unverified;  // why the index must not be believed about the cache, empty: it may
  std::string incomplete;  // why the index lacks blocks of it, for good; empty: no such reason
  bool draining = false;   // its agent has the worker drained
  AnnouncedBlockSize block_size;
  // What the events mean where the worker holds several copies of a block, and by the names of
  // adapters.
  contract::Copies copies = contract::Copies::RefCount;
  content::AdapterMeanings adapters;

  bool operator==(const Feed&) const = default;
};

struct FeedNews {
  bool health = false;  // `unverified`, `incomplete` or `draining` is another
  bool block_size = false;
};

// What the facts of its cache mean for a feed. A worker that has announced nothing may have
// nothing from before, unless its replay endpoint was asked and is silent. A block size that no
// event has told is no news, unless it is proved that there was none: then one that is remembered
// was told of an engine that is gone. Pure.
FeedNews take_facts(Feed& feed, const operations::CacheFacts& facts);
// The feed cannot be read, for good. False: that is no news. Pure.
bool refuse(Feed& feed, std::string_view reason);

}  // namespace sightline::fleet
