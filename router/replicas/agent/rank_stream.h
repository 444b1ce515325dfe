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
#include "router/replicas/frames/stream_message.h"
#include "router/replicas/publisher/frame_publisher.h"

// The agent: the streams of several ranks (router/replicas/publisher). They are between the thread
// that reads engines' events and the thread that uses NATS.
namespace sightline::agent {

// The state of a rank's cache after its events were read.
struct CacheReport {
  // CacheName::epoch to which the facts belong.
  std::uint64_t epoch = 0;
  operations::CacheFacts facts;
  // Of the last batch.
  std::optional<std::chrono::milliseconds> lag_by_stamp;
};

// A stream at one moment, for people and metrics.
struct StreamView {
  frames::StreamName name;
  // Absent: the held blocks are not proved.
  std::optional<std::uint64_t> epoch;
  std::uint64_t position = 0;
  operations::CacheDigest digest;
  operations::CacheFacts facts;
  bool has_feed = false;
  bool is_capped = false;
  // Blocks above PublisherOptions::blocks_max, since the start.
  std::uint64_t left_out = 0;
  std::size_t memory_bytes = 0;
  // Messages that were ready, and that NATS did not accept.
  std::uint64_t unsent = 0;
  std::optional<std::chrono::milliseconds> lag_by_stamp;
  publisher::PublisherStatistics statistics;
};

// One stream. It stays when its feed is replaced: a worker that returns, or whose addresses change,
// has another CacheId. Of several feeds the one that began last counts. Under the lock it does only
// memory work, for at most a millisecond or two.
// Thread safety: all methods from any thread, take() from its feed's thread.
class RankStream {
 public:
  // What a stream needs.
  struct Deps {
    frames::StreamName name;
    frames::Instance agent;
    publisher::PublisherOptions options;
    // 64 random bits, from any thread.
    std::function<std::uint64_t()> draw;
    // Called when due() has changed to this time, perhaps to an earlier one than before.
    std::function<void(Instant)> told_due;
    // Drains from the first engine on, see drain().
    bool is_draining = false;
  };
  // The clock outlives this object.
  RankStream(Deps setup, const Clock& clock);

  // A feed begins or ends. Each begins a new epoch of the cache.
  void begin_feed(CacheId cache) SL_EXCLUDES(mutex_);
  void end_feed(CacheId cache) SL_EXCLUDES(mutex_);
  // Takes an operation or facts. Ignores a feed that does not count. `tell()` follows take() soon,
  // on the same thread.
  void take(CacheId cache, const operations::CacheName& name,
            const operations::Operation& operation) SL_EXCLUDES(mutex_);
  void tell(CacheId cache, const CacheReport& told) SL_EXCLUDES(mutex_);

  // Sets why there is no feed, as one sentence. Ignored while there is a feed.
  void explain(const std::string& reason) SL_EXCLUDES(mutex_);
  // From now on the stream requests that routers send the worker no more requests. This ends when
  // the drained engine has ended and another one is read. If no engine is read yet, it ends with
  // the first one. So a restarted container gets requests again.
  void drain() SL_EXCLUDES(mutex_);

  // As the methods of FramePublisher.
  void hear(const frames::Message& message, Instant now) SL_EXCLUDES(mutex_);
  void limit_payload(std::size_t bytes_max) SL_EXCLUDES(mutex_);
  std::vector<publisher::Outgoing> bye() SL_EXCLUDES(mutex_);

  // What the caller does next.
  struct Actions {
    std::vector<publisher::Outgoing> outgoing;
    // Requests of routers to pass on.
    std::optional<CacheId> look;
    std::optional<CacheId> relearn;
    // Whether `relearn` can use a replay.
    bool has_replay = false;
  };
  // Does the due work, and a step of a dump. Call it when due() has come.
  Actions turn(Instant now) SL_EXCLUDES(mutex_);
  // When turn() has work. Read without the lock.
  [[nodiscard]] Instant due() const { return due_; }

  // Whether an engine's events are read.
  [[nodiscard]] bool has_feed() const SL_EXCLUDES(mutex_);
  // The state at this moment.
  [[nodiscard]] StreamView view() const SL_EXCLUDES(mutex_);

 private:
  // The name that the publisher gets. It is unique among all feeds of this stream.
  [[nodiscard]] operations::CacheName cache_name(std::uint64_t epoch) const SL_REQUIRES(mutex_);
  // Passes told_ to the publisher.
  void retell(Instant now) SL_REQUIRES(mutex_);
  // Sets due_. Call it after every change of the publisher.
  void settle() SL_REQUIRES(mutex_);

  const frames::StreamName name_;
  const std::function<void(Instant)> told_due_;
  const Clock& clock_;

  mutable Mutex mutex_;
  publisher::FramePublisher publisher_ SL_GUARDED_BY(mutex_);
  // The feed that counts. Absent: no engine is read.
  std::optional<CacheId> feed_ SL_GUARDED_BY(mutex_);
  std::uint64_t feeds_ SL_GUARDED_BY(mutex_) = 0;  // begun and ended ones
  CacheReport told_ SL_GUARDED_BY(mutex_);         // last
  bool draining_ SL_GUARDED_BY(mutex_) = false;
  // The engine was drained and has ended.
  bool drained_engine_ended_ SL_GUARDED_BY(mutex_) = false;
  // The publisher knows the time of the present reading.
  bool is_timed_ SL_GUARDED_BY(mutex_) = false;

  std::atomic<Instant> due_ = Instant::max();
};

}  // namespace sightline::agent
