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
#include "router/replicas/followed/stream_status.h"
#include "router/replicas/follower/follower.h"
#include "router/replicas/frames/stream_message.h"

namespace sightline::followed {

// One stream between NATS and the index: opens and follows messages, seals and sends requests. It
// sends no request before NATS has confirmed the subscriptions, because replies would be lost.
// Thread safety: one thread at a time.
class FollowedStream : private follower::HeldBlocks {
 public:
  // The objects that it uses. All outlive it.
  struct Deps {
    const contract::Subjects& subjects;
    const envelope::Sealer& sealer;
    index::IndexWriter& index;
    const index::IndexStatistics& held;
    index::RemovalJournal& removals;
    // Passes a message to NATS. If that fails, the follower repeats the request later.
    std::function<void(const std::string& subject, const std::string& payload)> send;
  };
  // setup.reader is a name that no other stream of any process has.
  FollowedStream(CacheId cache, follower::FollowerSetup setup, const Deps& deps);

  // The subjects of the agent's messages to all routers, and of its replies to this one.
  [[nodiscard]] const std::string& events_subject() const { return events_; }
  [[nodiscard]] const std::string& replies_subject() const { return replies_; }

  // Takes an event of either subject. Returns false if the message was dropped. Then turn() has no
  // work before deadline().
  bool take(const nats::Event& event, Instant now);
  // As FrameFollower::nats_fresh(). Call it before turn().
  void nats_fresh(Instant sent_at) {
    if (follower_) follower_->nats_fresh(sent_at);
  }
  // Sends the requests that are due. Call it at deadline() and after events were taken.
  void turn(Instant now);
  // When turn() has work. Instant::max(): never.
  [[nodiscard]] Instant deadline() const;

  // As the methods of FrameFollower.
  void look(Instant now);
  void relearn(Instant now);
  void ask_again(Instant now);
  // Clears the cache in the index. No other call may follow.
  void forget();

  // The state of the stream, see FollowedStatus.
  [[nodiscard]] FollowedStatus status() const;

 private:
  // follower::HeldBlocks: what the index holds of this cache.
  [[nodiscard]] operations::CacheDigest digest() const override {
    return deps_.held.digest(cache_);
  }
  [[nodiscard]] std::uint64_t refused() const override { return deps_.held.refused(cache_); }
  [[nodiscard]] std::optional<std::uint64_t> engine_blocks() const override {
    return deps_.held.limits(cache_).engine_blocks;
  }

  // Opens and decodes a message and passes it to the follower.
  bool hear(const nats::Message& message, Instant now);
  // Both subjects are received from now on.
  void connected(const nats::Connected& connected, Instant now);
  // Counts a message that was not decoded.
  bool refuse(Refusal why) {
    ++refused_[static_cast<std::size_t>(why)];
    return false;
  }

  const CacheId cache_;
  const follower::FollowerSetup setup_;
  const Deps deps_;
  const std::string events_;
  const std::string asks_;
  const std::string replies_;
  index::IndexedCache sink_;
  // From the first connection on.
  std::optional<follower::FrameFollower> follower_;
  // The connection was there and is lost.
  bool is_away_ = false;
  // Refused messages, by reason.
  std::array<std::uint64_t, kRefusalCount> refused_{};
  std::uint64_t lost_ = 0;
  std::uint64_t losses_ = 0;
  // As last seen in the facts.
  std::optional<std::uint64_t> sequence_;
  std::optional<Instant> news_at_;
};

}  // namespace sightline::followed
