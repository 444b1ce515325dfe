// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/load/message.h"
#include "router/workers/fleet/load.h"

namespace sightline::load {

// What some steps of some bookings on a rank change together. Sums of whole bookings' steps, in
// whatever groups, give the same totals.
struct Delta {
  std::int64_t in_flight = 0;
  std::int64_t prefill_tokens = 0;
  std::int64_t blocks = 0;
  double prefill_blocks = 0;  // reserved

  Delta& operator+=(const Delta& more) {
    in_flight += more.in_flight;
    prefill_tokens += more.prefill_tokens;
    blocks += more.blocks;
    prefill_blocks += more.prefill_blocks;
    return *this;
  }
};
Delta delta_of(const fleet::LoadChange& change);

struct OwnOptions {
  // Of a message before it is sealed: the server's payload limit less envelope::kSealBytes.
  std::size_t message_bytes_max = 64U << 10U;
  // Changes are told so long after those before them, at the latest.
  Duration batch = std::chrono::milliseconds(5);
  Duration snapshot_interval = std::chrono::seconds(1);
  // Least time between snapshots, however many ask: asks that were recorded can be sent again.
  Duration answer_pause = std::chrono::milliseconds(20);
};

// Least OwnOptions::message_bytes_max: there is room for a rank of any name.
inline constexpr std::size_t kMessageBytesMin =
    kToldOverheadBytesMax + kRankBytes + frames::kNameBytesMax;

// What this router has booked, as it is told to the others. Changes, asks and time in; messages
// out. Whoever owns it calls turn() at due() and after every other call. A message that could not
// be sent is a gap to the others, who ask. Thread safety: none.
class OwnLoad {
 public:
  // instance: drawn at random, not 0. name: for people; what frames::kNameBytesMax or UTF-8 leaves
  // no room for is left out.
  OwnLoad(std::uint64_t instance, std::string name, OwnOptions options = {});

  // Each change that the book's observer is told of, once, those of one booking in their order.
  void take(const fleet::LoadChange& change, Instant now) {
    take(change.rank, delta_of(change), now);
  }
  void take(const fleet::RankName& rank, const Delta& delta, Instant now);
  // What is sent from now on is heard by the others: they are told everything at once.
  void connected(Instant now) { snapshot_due_ = now; }
  // As OwnOptions::message_bytes_max, for what is told from now on; at least kMessageBytesMin.
  void set_message_bytes_max(std::size_t bytes);
  // Also asks of other routers, or our own, which are left aside.
  void asked(const Ask& ask);

  // Messages for all, to be sent in this order. The first change is told at once.
  std::vector<std::string> turn(Instant now);
  [[nodiscard]] Instant due() const;
  // When a change that comes now is told.
  [[nodiscard]] Instant next_changes() const { return changes_due_; }
  // The last message, when nothing is booked any more.
  [[nodiscard]] std::string farewell() const { return encode(Gone{.instance = instance_}); }

  struct Statistics {
    std::uint64_t messages = 0;
    std::uint64_t snapshots = 0;
    std::uint64_t answers = 0;        // of these, for asks
    std::uint64_t asks_left_out = 0;  // more than kNoncesMax for one snapshot
  };
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  // Ranks with any work, of now or lately.
  [[nodiscard]] std::size_t ranks() const { return totals_.size(); }

 private:
  struct Total {
    fleet::Load load;  // but for recent_prefill_blocks
    fleet::RecentWork recent;
  };
  [[nodiscard]] bool is_snapshot_due(Instant now) const;
  std::vector<std::string> tell_all(Instant now);
  std::vector<std::string> tell_changed(Instant now);
  std::vector<std::string> send(std::vector<Told> parts);
  // As many messages as the ranks need, at least one.
  [[nodiscard]] std::vector<Told> parted(std::vector<RankLoad> ranks) const;
  static RankLoad told_of(const fleet::RankName& rank, const Total& total, Instant now);

  const std::uint64_t instance_;
  const std::string name_;
  OwnOptions options_;
  std::map<fleet::RankName, Total> totals_;
  std::set<fleet::RankName> changed_;  // not told yet
  std::vector<std::uint64_t> nonces_;  // not answered yet
  std::uint64_t seq_ = 0;              // the last one told
  Instant changes_due_{};
  Instant snapshot_due_{};
  Instant answer_due_{};
  Statistics statistics_;
};

}  // namespace sightline::load
