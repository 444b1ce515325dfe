// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/clock.h"
#include "common/base/rng.h"

#include "router/replicas/follower/options.h"
#include "router/replicas/follower/retry.h"
#include "router/replicas/follower/statistics.h"
#include "router/replicas/frames/stream_message.h"

namespace sightline::follower {

// Pulls one dump in chunks. It requests a window of chunks, returns them in order, and requests
// missing ones again, one by one.
// Thread safety: one thread at a time.
class DumpPull {
 public:
  // `reader` is our name in the subject of replies. `options` outlives this object.
  DumpPull(const FollowerOptions& options, std::string reader)
      : options_(options), reader_(std::move(reader)), held_(options.held) {}

  // Begins to pull the offered dump. An earlier one ends.
  void begin(const frames::Offer& offer, Instant now);
  // Drops the dump and all chunks that wait.
  void end();
  // Whether a dump is under way.
  [[nodiscard]] bool is_on() const { return offer_.has_value(); }
  // The offer of the dump. Needs is_on().
  [[nodiscard]] const frames::Offer& offer() const { return *offer_; }

  // Takes a chunk. Returns the reason if it is dropped.
  std::optional<Drop> hear(frames::DumpChunk chunk, Instant now);
  // Returns the operations of the next chunk in order, if it has arrived.
  std::optional<std::vector<operations::Operation>> next();
  // Whether next() has returned only the first chunk so far.
  [[nodiscard]] bool is_first() const { return given_ == 1; }
  // All chunks were returned.
  [[nodiscard]] bool is_whole() const { return is_on() && given_ == offer_->chunks; }
  // The returned chunks have the offered checksum.
  [[nodiscard]] bool is_as_offered() const { return sum_.value() == offer_->checksum; }
  // The dump brings more blocks than the offer announced, or has more chunks than announced blocks.
  // An honest dump never does. Without this check a dump might never end.
  [[nodiscard]] bool is_too_long() const {
    return is_on() && std::max<std::uint64_t>(blocks_, offer_->chunks) > blocks_offered_;
  }
  // Nothing new came for options.dump_silent_after.
  [[nodiscard]] bool is_silent(Instant now) const {
    return is_on() && now - heard_at_ >= options_.dump_silent_after;
  }

  // Appends the requests for chunks that are due.
  void ask(Instant now, Rng& rng, FollowerStatistics& statistics, std::vector<frames::Body>& asks);
  // When ask() or is_silent() has something new. Instant::max(): never.
  [[nodiscard]] Instant due() const;
  // Restarts the measured silence at `at`, because a lost connection also lost the requests and
  // chunks under way.
  void listen_anew(Instant at) { heard_at_ = std::max(heard_at_, at); }

 private:
  const FollowerOptions& options_;
  const std::string reader_;
  std::optional<frames::Offer> offer_;
  // On all tiers.
  std::uint64_t blocks_offered_ = 0;
  // In the chunks that came.
  std::uint64_t blocks_ = 0;
  // Chunks that next() returned.
  std::uint32_t given_ = 0;
  // Chunks before this one were requested at least once.
  std::uint32_t asked_ = 0;
  // Requested chunks that have not come, with the time of their next request.
  std::map<std::uint32_t, Retry> open_;
  // A chunk that waits for an earlier one.
  struct WaitingChunk {
    std::vector<operations::Operation> operations;
    std::size_t bytes = 0;
  };
  // Chunks that came before an earlier one.
  std::map<std::uint32_t, WaitingChunk> waiting_;
  // The bytes of waiting_.
  HeldBytes held_;
  frames::Checksum sum_;
  // When the last new chunk came.
  Instant heard_at_{};
};

}  // namespace sightline::follower
