// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/replicas_view.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/contract/metrics_replicas.h"

namespace sightline::admin {
namespace {

using followed::FollowedStatus;
using operations::CacheDigest;

// Builds {"name":value,…} from its fields.
class Object {
 public:
  Object& raw(std::string_view name, std::string_view json) {
    text_ += (text_.empty() ? "" : ",") + json::to_quoted(name) + ":";
    text_ += json;
    return *this;
  }
  Object& text(std::string_view name, std::string_view value) {
    return raw(name, value.empty() ? "null" : json::to_quoted(value));
  }
  Object& count(std::string_view name, std::optional<std::uint64_t> value) {
    return raw(name, value ? std::to_string(*value) : "null");
  }
  Object& age(std::string_view name, std::optional<Instant> since, Instant now) {
    if (!since) return raw(name, "null");
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - *since);
    return raw(name, std::to_string(ms.count()));
  }
  [[nodiscard]] std::string json() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::uint64_t ms_of(Duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

template <class Items, class Json>
std::string array_of(const Items& items, Json json) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? "," : "") + json(item);
  return out + "]";
}

std::string connection_json(nats::Sending sending, const nats::Connection& connection,
                            Instant now) {
  const auto away = connection.away_since();
  return Object()
      .text("connection", name_of(sending))
      .raw("connected", away ? "false" : "true")
      .age("away_ms", away, now)
      // While the connection is up, its last trouble is over.
      .text("trouble", away ? connection.trouble() : "")
      .json();
}

std::string digest_json(const CacheDigest& digest) {
  constexpr std::array<std::string_view, operations::kTierCount> kTiers{"gpu", "cpu", "storage"};
  Object tiers;
  for (std::size_t i = 0; i < kTiers.size(); ++i) {
    tiers.raw(kTiers[i], Object()
                             .count("count", digest.tiers[i].count)
                             .text("xor", to_hex(digest.tiers[i].mixed_xor))
                             .json());
  }
  return tiers.json();
}

std::string instance_json(const frames::Instance& instance) {
  return Object().text("name", instance.name).text("instance", to_hex(instance.number)).json();
}

std::string refused_json(const FollowedStatus& status) {
  Object reasons;
  for (std::size_t i = 0; i < followed::kRefusalCount; ++i) {
    reasons.count(name_of(static_cast<followed::Refusal>(i)), status.refused[i]);
  }
  return reasons.json();
}

std::string dropped_json(const FollowedStatus& status) {
  Object reasons;
  for (std::size_t i = 0; i < follower::kDropCount; ++i) {
    reasons.count(name_of(static_cast<follower::Drop>(i)), status.statistics.dropped[i]);
  }
  return reasons.json();
}

std::string stream_json(const FollowedStatus& status, const CacheDigest& digest, Instant now) {
  const follower::FollowerStatus& at = status.at;
  const follower::FollowerStatistics& statistics = status.statistics;
  const bool is_verified = status.facts.health == operations::FeedHealth::Verified;
  std::optional<std::uint64_t> lag;
  if (at.lag_by_stamp) lag = static_cast<std::uint64_t>(at.lag_by_stamp->count());
  return Object()
      .text("worker", status.stream.worker)
      .count("rank", status.stream.rank)
      .text("health", is_verified ? "verified" : "unverified")
      .text("reason", operations::reason_of(status.facts))
      .raw("draining", status.facts.draining ? "true" : "false")
      .raw("agent", at.agent ? instance_json(*at.agent) : "null")
      .raw("agents", array_of(at.agents, instance_json))
      .text("dead_agent", at.dead_agent)
      .age("dead_ms", at.dead_since, now)
      .text("epoch", at.epoch ? to_hex(*at.epoch) : "")
      .count("position", at.position)
      // A head has a meaning only within an epoch.
      .count("head", at.epoch ? std::optional(at.head) : std::nullopt)
      .count("behind", at.position ? std::optional(behind_of(status)) : std::nullopt)
      .raw("digest", digest_json(digest))
      .age("digest_equal_ms", at.digest_equal_at, now)
      .age("good_beat_ms", at.good_beat_at, now)
      .count("lag_by_stamp_ms", lag)
      .count("waiting_bytes", at.waiting_bytes)
      .count("epochs", statistics.epochs)
      .count("gaps", statistics.gaps)
      .count("losses", status.losses)
      .count("contests", statistics.contests)
      .count("digests_unequal", statistics.digests_unequal)
      .raw("dropped", dropped_json(status))
      .raw("refused", refused_json(status))
      .json();
}

}  // namespace

void ReplicasView::add_part(std::string name, std::function<std::string()> json) {
  parts_.emplace_back(std::move(name), std::move(json));
}

std::string ReplicasView::json() const {
  const Instant now = sources_.clock.now();
  const membership::Announcement mine = sources_.membership.mine();
  const followed::NatsFreshness nats = sources_.feeds.nats();
  Object out;
  out.text("name", mine.name)
      .text("instance", to_hex(mine.instance))
      .text("scope", mine.scope)
      .text("revision", mine.revision)
      .raw("fresh", nats.stale.empty() ? "true" : "false")
      .text("stale", nats.stale)
      .count("round_trip_ms", ms_of(nats.round_trip))
      .raw("nats", "[" + connection_json(nats::Sending::AtOnce, sources_.control, now) + "," +
                       connection_json(nats::Sending::InBatches, sources_.events, now) + "]")
      .raw("members", sources_.membership.json())
      .raw("streams", array_of(sources_.feeds.statuses(), [&](const FollowedStatus& status) {
             return stream_json(status, sources_.index.digest(status.cache), now);
           }));
  for (const auto& [name, json] : parts_) out.raw(name, json());
  return out.json();
}

void ReplicasView::refresh() {
  metrics_.gauge(contract::kReplicaThreadTurnSeconds)
      .set(std::chrono::duration<double>(sources_.feeds.turn_age()).count());
  metrics_.gauge(contract::kReplicaHeldBytes).set(static_cast<double>(sources_.feeds.held_bytes()));
  const followed::NatsFreshness nats = sources_.feeds.nats();
  metrics_.gauge(contract::kNatsRoundTripSeconds)
      .set(std::chrono::duration<double>(nats.round_trip).count());
  metrics_.gauge(contract::kNatsStale).set(nats.stale.empty() ? 0 : 1);
  stream_metrics_.tell(sources_.feeds.statuses());
}

}  // namespace sightline::admin
