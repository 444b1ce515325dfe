// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

#include "router/cache/operations/facts.h"
#include "router/cache/operations/operation.h"
#include "router/replicas/frames/message.h"
#include "router/replicas/publisher/frame_publisher.h"

// The agent: streams of several ranks (router/replicas/publisher) between the thread that reads
// engines' events and the one that talks to NATS.
namespace sightline::agent {

// What is told of a rank's cache after its events were read.
struct Told {
  std::uint64_t epoch = 0;  // CacheName::epoch, of which the facts are
  operations::CacheFacts facts;
  std::optional<std::chrono::milliseconds> lag_by_stamp;  // of the last batch
};

// A stream at one moment, for people and metrics.
struct StreamView {
  frames::StreamName name;
  std::optional<std::uint64_t> epoch;  // nothing: what is held is not proved
  std::uint64_t position = 0;
  operations::CacheDigest digest;
  operations::CacheFacts facts;
  bool has_feed = false;
  bool is_capped = false;
  std::uint64_t left_out = 0;  // blocks beyond PublisherOptions::blocks_max, since the start
  std::size_t memory_bytes = 0;
  std::uint64_t unsent = 0;  // messages that were ready, and that NATS did not take
  std::optional<std::chrono::milliseconds> lag_by_stamp;
  publisher::PublisherStatistics statistics;
};

// One stream. It stays while the feed that fills it is replaced: a worker that comes back, or whose
// addresses change, has another CacheId. Of several feeds the one that began last counts.
// Nothing is done under the lock but memory work, a millisecond or two of it at most.
// Thread safety: all methods from any thread, take() from that of its feed.
class RankStream {
 public:
  struct Setup {
    frames::StreamName name;
    frames::Instance agent;
    publisher::PublisherOptions options;
    std::function<std::uint64_t()> draw;    // random 64 bits, from any thread
    std::function<void(Instant)> told_due;  // due() is this now, perhaps earlier than before
    bool is_draining = false;               // from the first engine on, as by drain()
  };
  // The clock outlives it.
  RankStream(Setup setup, const Clock& clock);

  void begin_feed(CacheId cache) SL_EXCLUDES(mutex_);
  void end_feed(CacheId cache) SL_EXCLUDES(mutex_);
  // Of a feed that does not count: nothing. tell() comes soon after take(), on the same thread.
  void take(CacheId cache, const operations::CacheName& name,
            const operations::Operation& operation) SL_EXCLUDES(mutex_);
  void tell(CacheId cache, const Told& told) SL_EXCLUDES(mutex_);

  // Why there is no feed, as one sentence; nothing while there is one.
  void explain(const std::string& reason) SL_EXCLUDES(mutex_);
  // From now on routers are told to send the worker nothing more, until its engine has ended, or is
  // not there yet, and another one is read: a container that is started again takes requests again.
  void drain() SL_EXCLUDES(mutex_);

  // See FramePublisher.
  void hear(const frames::Message& message, Instant now) SL_EXCLUDES(mutex_);
  void limit_payload(std::size_t bytes_max) SL_EXCLUDES(mutex_);
  std::vector<publisher::Outgoing> bye() SL_EXCLUDES(mutex_);

  struct Turn {
    std::vector<publisher::Outgoing> outgoing;
    // Wishes that are to be fulfilled.
    std::optional<CacheId> look;
    std::optional<CacheId> relearn;
    bool has_replay = false;  // to relearn from
  };
  // To be called when due() has come; does a step of a dump.
  Turn turn(Instant now) SL_EXCLUDES(mutex_);
  [[nodiscard]] Instant due() const { return due_; }

  [[nodiscard]] bool has_feed() const SL_EXCLUDES(mutex_);
  [[nodiscard]] StreamView view() const SL_EXCLUDES(mutex_);

 private:
  [[nodiscard]] operations::CacheName cache_name(std::uint64_t epoch) const SL_REQUIRES(mutex_);
  void retell(Instant now) SL_REQUIRES(mutex_);
  void settle() SL_REQUIRES(mutex_);

  const frames::StreamName name_;
  const std::function<void(Instant)> told_due_;
  const Clock& clock_;

  mutable Mutex mutex_;
  publisher::FramePublisher publisher_ SL_GUARDED_BY(mutex_);
  std::optional<CacheId> feed_ SL_GUARDED_BY(mutex_);
  std::uint64_t feeds_ SL_GUARDED_BY(mutex_) = 0;  // begun and ended
  Told told_ SL_GUARDED_BY(mutex_);                // last
  bool draining_ SL_GUARDED_BY(mutex_) = false;
  bool drained_engine_ended_ SL_GUARDED_BY(mutex_) = false;
  bool is_timed_ SL_GUARDED_BY(mutex_) = false;  // the publisher knows the time of this reading

  std::atomic<Instant> due_ = Instant::max();
};

}  // namespace sightline::agent
