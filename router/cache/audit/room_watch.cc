// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/room_watch.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_workers.h"

namespace sightline::audit {

namespace {

constexpr std::string_view kGaveWay =
    "it had more blocks than its bound while the index was full: all were dropped, and blocks "
    "beyond the bound are not stored";
constexpr std::string_view kIndexFull =
    "the index is full: some of its blocks are missing. The router requests them again when the "
    "index has room";
constexpr std::string_view kNotRemembered =
    "it announced more blocks than the router or its agent can keep: some are missing";
constexpr std::string_view kBeyondEngine =
    "its KV events announced more blocks than its engine has (gpu_blocks)";

}  // namespace

void RoomWatch::look(const std::vector<CacheRoom>& rooms, Instant now) {
  // Sets the bounds first. The index uses them to decide which caches give way.
  router_.set_bounds(rooms);
  name_those_that_gave_way(rooms);
  std::map<CacheId, Watched> watched;
  std::map<std::string_view, std::uint64_t> lacked;
  std::size_t asks = 0;
  for (const CacheRoom& room : rooms) {
    const auto before = watched_.find(room.cache);
    Watched& now_watched = watched[room.cache];
    if (before != watched_.end()) now_watched = before->second;
    const std::string_view lack = find_lack(room, now_watched);
    const std::string_view lack_before = std::exchange(now_watched.lack, lack);
    if (lack != lack_before) {
      log(lack.empty() ? LogLevel::Info : LogLevel::Warn,
          lack.empty() ? "the index has all blocks of a worker again"
                       : "the index has too few or too many blocks of a worker",
          {{"worker", room.worker}, {"engine", room.cache.value}, {"reason", lack}});
    }
    // Refused blocks are worth a request only while the index has room. Otherwise it refuses them
    // again.
    const std::uint64_t refused = router_.index.refused(room.cache);
    lacked[room.worker] += refused;
    if (refused == 0) {
      now_watched.ask_from = {};
      now_watched.pause = {};
    } else if (asks < options_.asks_max && now >= now_watched.ask_from &&
               router_.index.has_room()) {
      ++asks;
      ask_again(room, now_watched, now);
    }
  }
  for (const auto& [worker, blocks] : lacked) {
    metrics_.gauge(contract::kIndexLackedBlocks, {worker}).set(static_cast<double>(blocks));
  }
  publish(watched);
  watched_ = std::move(watched);
}

void RoomWatch::publish(const std::map<CacheId, Watched>& watched) {
  std::map<CacheId, std::string_view> lacks;
  for (const auto& [cache, one] : watched) {
    if (!one.lack.empty()) lacks[cache] = one.lack;
  }
  const MutexLock lock(mutex_);
  lacks_.swap(lacks);
}

std::string_view RoomWatch::lack_of(CacheId cache) const {
  const MutexLock lock(mutex_);
  const auto lack = lacks_.find(cache);
  return lack == lacks_.end() ? std::string_view{} : lack->second;
}

void RoomWatch::name_those_that_gave_way(const std::vector<CacheRoom>& rooms) {
  for (const CacheId cache : router_.take_gave_way()) {
    const auto room = std::find_if(rooms.begin(), rooms.end(),
                                   [cache](const CacheRoom& one) { return one.cache == cache; });
    if (room == rooms.end()) continue;
    metrics_.counter(contract::kIndexGaveWayTotal, {room->worker}).add();
    log(LogLevel::Warn,
        "the index is full and a worker had more blocks than its bound: dropped all its blocks",
        {{"worker", room->worker}, {"engine", cache.value}, {"engine_blocks", room->blocks}});
  }
}

// Needs two looks: at a single one, the engine may have restarted with more blocks than it reported
// before.
std::string_view RoomWatch::find_lack(const CacheRoom& room, Watched& watched) const {
  const auto facts = router_.facts(room.cache);
  const bool may_be_more = !facts || facts->upper_bound;
  const bool is_beyond =
      !may_be_more && room.blocks > 0 && router_.index.blocks(room.cache) > room.blocks;
  const bool was_beyond = std::exchange(watched.was_beyond, is_beyond);
  const index::CacheLimits limits = router_.index.limits(room.cache);
  if (limits.gave_way) return kGaveWay;
  if (is_beyond && was_beyond) return kBeyondEngine;
  if (limits.refused > 0) return kIndexFull;
  if (facts && facts->missing.no_room) return kNotRemembered;
  return {};
}

void RoomWatch::ask_again(const CacheRoom& room, Watched& watched, Instant now) {
  // Each request may fill the index again, so the pauses grow.
  const Duration twice = std::min(2 * watched.pause, options_.ask_pause_max);
  watched.pause = std::max(twice, options_.ask_pause_min);
  watched.ask_from = now + watched.pause;
  if (!router_.ask_again(room.cache)) return;
  metrics_.counter(contract::kIndexAskedAgainTotal, {room.worker}).add();
  log(LogLevel::Info, "the index has room again: requested the blocks of a worker again",
      {{"worker", room.worker}, {"engine", room.cache.value}});
}

}  // namespace sightline::audit
