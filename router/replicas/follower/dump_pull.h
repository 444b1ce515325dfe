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
#include "router/replicas/frames/message.h"

namespace sightline::follower {

// One dump, pulled in chunks: a window of them is asked for, they are given out in their order, and
// those that do not come are asked for again one by one. Thread safety: none.
class DumpPull {
 public:
  DumpPull(const FollowerOptions& options, std::string reader)
      : options_(options), reader_(std::move(reader)), held_(options.held) {}

  void begin(const frames::Offer& offer, Instant now);
  void end();
  [[nodiscard]] bool is_on() const { return offer_.has_value(); }
  [[nodiscard]] const frames::Offer& offer() const { return *offer_; }

  // Why it was not kept; nothing: it is.
  std::optional<Drop> hear(frames::Chunk chunk, Instant now);
  // The next chunk in their order, if it is there.
  std::optional<std::vector<operations::Operation>> next();
  // What next() gave last is the first chunk.
  [[nodiscard]] bool is_first() const { return given_ == 1; }
  // All chunks were given out.
  [[nodiscard]] bool is_whole() const { return is_on() && given_ == offer_->chunks; }
  // They are those that were offered.
  [[nodiscard]] bool is_as_offered() const { return sum_.value() == offer_->checksum; }
  // It brings more blocks than were offered, or more chunks than it offers blocks: it may have no
  // end.
  [[nodiscard]] bool is_too_long() const {
    return is_on() && std::max<std::uint64_t>(blocks_, offer_->chunks) > blocks_offered_;
  }
  // Nothing new came for too long.
  [[nodiscard]] bool is_silent(Instant now) const {
    return is_on() && now - heard_at_ >= options_.dump_silent_after;
  }

  void ask(Instant now, Rng& rng, FollowerStatistics& statistics, std::vector<frames::Body>& asks);
  // When there is something to ask for, or it is silent; Instant::max(): never.
  [[nodiscard]] Instant due() const;
  // What was under way is lost with a connection: its silence begins anew.
  void listen_anew(Instant at) { heard_at_ = std::max(heard_at_, at); }

 private:
  const FollowerOptions& options_;
  const std::string reader_;
  std::optional<frames::Offer> offer_;
  std::uint64_t blocks_offered_ = 0;  // on all tiers
  std::uint64_t blocks_ = 0;          // in the chunks that came
  std::uint32_t given_ = 0;
  std::uint32_t asked_ = 0;  // chunks in front of this were asked for at least once
  std::map<std::uint32_t, Retry> open_;
  struct Waiting {
    std::vector<operations::Operation> operations;
    std::size_t bytes = 0;
  };
  std::map<std::uint32_t, Waiting> waiting_;
  HeldBytes held_;  // by these
  frames::Checksum sum_;
  Instant heard_at_{};
};

}  // namespace sightline::follower
