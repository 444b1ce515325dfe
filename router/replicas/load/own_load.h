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

#include "router/replicas/load/load_message.h"
#include "router/workers/fleet/load.h"

namespace sightline::load {

// What some steps of some bookings change on a rank together. The totals are the same, no matter
// how the steps are grouped.
struct Delta {
  std::int64_t in_flight = 0;
  std::int64_t prefill_tokens = 0;
  std::int64_t blocks = 0;
  // When reserved, for the recent work.
  double prefill_blocks = 0;

  Delta& operator+=(const Delta& more) {
    in_flight += more.in_flight;
    prefill_tokens += more.prefill_tokens;
    blocks += more.blocks;
    prefill_blocks += more.prefill_blocks;
    return *this;
  }
};
// The change of one step. Each step counts once.
Delta delta_of(const fleet::LoadChange& change);

// Sizes and times of this router's messages.
struct OwnOptions {
  // The most bytes of a message before it is sealed. The owner sets it to the server's payload
  // limit less envelope::kSealBytes.
  std::size_t message_bytes_max = 64U << 10U;
  // The longest pause between a change and the message before it. Changes within it share a
  // message.
  Duration batch = std::chrono::milliseconds(5);
  // All totals are sent this often.
  Duration snapshot_interval = std::chrono::seconds(1);
  // The least pause between two snapshots, for any number of requests. Recorded requests can be
  // sent again without limit.
  Duration answer_pause = std::chrono::milliseconds(20);
};

// The least message_bytes_max: a message has room for a rank with the longest name.
inline constexpr std::size_t kMessageBytesMin =
    kToldOverheadBytesMax + kRankBytes + frames::kNameBytesMax;

// What this router has booked, as messages to the others. The owner calls turn() at due() and after
// every other call. A message that could not be sent is a gap for the others, and they ask.
// Thread safety: one thread at a time.
class OwnLoad {
 public:
  // `instance` is random and not 0. `name` is for people. It is cut to frames::kNameBytesMax, at a
  // whole character.
  OwnLoad(std::uint64_t instance, std::string name, OwnOptions options = {});

  // Takes each change that the load book reports, once. The changes of one booking must come in
  // their order.
  void take(const fleet::LoadChange& change, Instant now) {
    take(change.rank, delta_of(change), now);
  }
  void take(const fleet::RankName& rank, const Delta& delta, Instant now);
  // From now on others receive our messages, so all totals are sent next.
  void connected(Instant now) { snapshot_due_ = now; }
  // Sets OwnOptions::message_bytes_max for later messages. It is at least kMessageBytesMin.
  void set_message_bytes_max(std::size_t bytes);
  // Takes a request. It ignores its own and requests to other routers.
  void asked(const LoadAsk& ask);

  // Returns the messages for all routers, in order. A first change is sent immediately.
  std::vector<std::string> turn(Instant now);
  // When turn() has work.
  [[nodiscard]] Instant due() const;
  // When a change that comes now is sent.
  [[nodiscard]] Instant next_changes() const { return changes_due_; }
  // The last message. No booking may be left.
  [[nodiscard]] std::string farewell() const { return encode(Leave{.instance = instance_}); }

  // Counts since construction.
  struct OwnStatistics {
    std::uint64_t messages = 0;
    std::uint64_t snapshots = 0;
    // Of these, for requests.
    std::uint64_t answers = 0;
    // Above kNoncesMax for one snapshot.
    std::uint64_t asks_left_out = 0;
  };
  [[nodiscard]] const OwnStatistics& statistics() const { return statistics_; }
  // Ranks that have any work or had some lately.
  [[nodiscard]] std::size_t ranks() const { return totals_.size(); }

 private:
  // The load of one rank.
  struct Total {
    fleet::Load load;  // without recent_prefill_blocks
    fleet::RecentWork recent;
  };
  // Whether all totals must be sent.
  [[nodiscard]] bool is_snapshot_due(Instant now) const;
  // Writes all totals as a snapshot.
  std::vector<std::string> tell_all(Instant now);
  // Writes the totals that have changed.
  std::vector<std::string> tell_changed(Instant now);
  // Numbers and encodes messages.
  std::vector<std::string> send(std::vector<LoadReport> parts);
  // Splits the ranks into as many messages as they need, at least one.
  [[nodiscard]] std::vector<LoadReport> parted(std::vector<RankLoad> ranks) const;
  static RankLoad told_of(const fleet::RankName& rank, const Total& total, Instant now);

  const std::uint64_t instance_;
  const std::string name_;
  OwnOptions options_;
  std::map<fleet::RankName, Total> totals_;
  // Not sent yet.
  std::set<fleet::RankName> changed_;
  // Not answered yet.
  std::vector<std::uint64_t> nonces_;
  // Of the last message.
  std::uint64_t seq_ = 0;
  Instant changes_due_{};
  Instant snapshot_due_{};
  Instant answer_due_{};
  OwnStatistics statistics_;
};

}  // namespace sightline::load
