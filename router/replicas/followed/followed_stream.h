// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/contract/subjects.h"
#include "common/nats/inbox.h"

#include "router/cache/index/indexed_cache.h"
#include "router/cache/index/prefix_index.h"
#include "router/cache/index/removal_journal.h"
#include "router/replicas/envelope/envelope.h"
#include "router/replicas/followed/status.h"
#include "router/replicas/follower/follower.h"
#include "router/replicas/frames/message.h"

namespace sightline::followed {

// One stream between NATS and the index: what comes is opened and followed, what is to be asked is
// sealed and sent. Nothing is asked before NATS has confirmed that answers will be heard.
// Thread safety: none.
class FollowedStream : private follower::HeldBlocks {
 public:
  // All outlive it.
  struct Around {
    const contract::Subjects& subjects;
    const envelope::Sealer& sealer;
    index::IndexWriter& index;
    const index::IndexStatistics& held;
    index::RemovalJournal& removals;
    // Hands a message to NATS; where that fails, it is asked for again in time.
    std::function<void(const std::string& subject, const std::string& payload)> send;
  };
  // The setup's reader is a name that no other stream of any process has.
  FollowedStream(CacheId cache, follower::FollowerSetup setup, const Around& around);

  // What its agent says to all, and to us alone.
  [[nodiscard]] const std::string& events_subject() const { return events_; }
  [[nodiscard]] const std::string& replies_subject() const { return replies_; }

  // An event of either subject. False: a message that was not used, so that there is nothing to do
  // before deadline().
  bool take(const nats::Event& event, Instant now);
  // As FrameFollower; to be called before turn().
  void nats_fresh(Instant sent_at) {
    if (follower_) follower_->nats_fresh(sent_at);
  }
  // To be called at deadline() and after events were taken: sends what is to be asked.
  void turn(Instant now);
  [[nodiscard]] Instant deadline() const;

  // As FrameFollower.
  void look(Instant now);
  void relearn(Instant now);
  void ask_again(Instant now);
  // Clears the cache; nothing is to follow.
  void forget();

  [[nodiscard]] FollowedStatus status() const;

 private:
  [[nodiscard]] operations::CacheDigest digest() const override {
    return around_.held.digest(cache_);
  }
  [[nodiscard]] std::uint64_t refused() const override { return around_.held.refused(cache_); }
  [[nodiscard]] std::optional<std::uint64_t> engine_blocks() const override {
    return around_.held.limits(cache_).engine_blocks;
  }

  bool hear(const nats::Message& message, Instant now);
  void connected(const nats::Connected& connected, Instant now);
  bool refuse(Refusal why) {
    ++refused_[static_cast<std::size_t>(why)];
    return false;
  }

  const CacheId cache_;
  const follower::FollowerSetup setup_;
  const Around around_;
  const std::string events_;
  const std::string asks_;
  const std::string replies_;
  index::IndexedCache sink_;
  std::optional<follower::FrameFollower> follower_;  // from the first connection on
  bool is_away_ = false;                             // a connection that there was
  std::array<std::uint64_t, kRefusalCount> refused_{};
  std::uint64_t lost_ = 0;
  std::uint64_t losses_ = 0;
  std::optional<std::uint64_t> sequence_;  // as last seen in its facts
  std::optional<Instant> news_at_;
};

}  // namespace sightline::followed
