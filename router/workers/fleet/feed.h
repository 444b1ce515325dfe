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

#include "router/cache/content/adapter_meanings.h"
#include "router/cache/operations/facts.h"
#include "router/workers/fleet/block_size.h"

namespace sightline::fleet {

// Where a rank publishes its KV events, from the router's point of view.
struct EventEndpoints {
  // The ZMQ endpoint of the events, for example "tcp://10.0.0.7:5557".
  std::string events;
  // The worker connects to this endpoint, so the router binds it.
  bool bind = false;
  // The ZMQ endpoint of the replay socket. Empty: there is no replay.
  std::string replay;
  // There are no endpoints: the worker's agent sends its blocks over NATS.
  bool by_agent = false;

  bool operator==(const EventEndpoints&) const = default;
};

// A data-parallel rank behind a worker's URL.
struct FoundRank {
  // As the engine numbers it.
  std::uint32_t number = 0;
  // Absent: its events are not known.
  std::optional<EventEndpoints> events;

  bool operator==(const FoundRank&) const = default;
};

// Whether the same ranks have the same event endpoints, and whether their events are assigned in
// the same way: events of a worker's only rank may name any rank.
bool same_events(const std::vector<FoundRank>& a, const std::vector<FoundRank>& b);

// The KV events of one rank, and the state of its cache by them.
struct Feed {
  // A new one when the feed begins again.
  CacheId cache;
  EventEndpoints endpoints;
  // Why the index entries of this cache do not count. Empty: they count.
  std::string unverified;
  // Why the index lacks blocks of this cache for good. Empty: there is no known reason.
  std::string incomplete;
  // Its agent drains the worker.
  bool draining = false;
  AnnouncedBlockSize block_size;
  // How events count if the worker holds several copies of a block, and what the names of adapters
  // in them mean.
  contract::Copies copies = contract::Copies::RefCount;
  content::AdapterMeanings adapters;

  bool operator==(const Feed&) const = default;
};

// What a call of take_facts() changed.
struct FeedNews {
  // `unverified`, `incomplete` or `draining`.
  bool health = false;
  bool block_size = false;
};

// Applies the facts of a cache to its feed. A worker that has announced nothing may have no older
// blocks, unless its replay endpoint was asked and is silent.
// A block size without any event changes nothing, with one exception. If the absence of events is
// proved, a remembered size belongs to an engine of the past. Pure.
FeedNews take_facts(Feed& feed, const operations::CacheFacts& facts);
// The feed cannot be read, for good. Returns false if that was known. Pure.
bool refuse(Feed& feed, std::string_view reason);

}  // namespace sightline::fleet
