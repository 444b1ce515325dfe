// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/contract/subjects.h"
#include "common/nats/connection.h"
#include "common/nats/inbox.h"
#include "common/runtime/metrics.h"
#include "common/runtime/worker_thread.h"

#include "router/replicas/envelope/envelope.h"
#include "router/replicas/frames/stream_codec.h"
#include "router/replicas/publisher/frame_publisher.h"
#include "tests/support/nats_server.h"

namespace sightline::test {

inline contract::NatsSettings nats_settings(const NatsServer& server) {
  contract::NatsSettings settings;
  settings.urls = server.url();
  return settings;
}

// An agent of one rank of a worker, with its own connection and thread. The test decides what its
// engine holds.
class Agent {
 public:
  using Blocks = std::set<std::uint64_t>;

  Agent(const NatsServer& server, frames::StreamName stream, std::uint64_t number)
      : stream_(stream),
        rng_(number),
        publisher_(stream, {.name = "agent-" + std::to_string(number), .number = number}, {},
                   [this] { return rng_.next(); }) {
    auto made = nats::Connection::create({nats_settings(server), "agent", nats::Sending::InBatches},
                                         metrics_, system_clock());
    connection_ = std::move(*made);
    connection_->subscribe(subjects_.asks(stream.worker, stream.rank), inbox_);
    facts_.health = operations::FeedHealth::Verified;
    thread_.emplace("agent", [this](const std::stop_token& stop) { run(stop); });
  }
  ~Agent() {
    thread_->request_stop();
    inbox_->wake();
    thread_->join();
  }

  void store(const std::vector<std::uint64_t>& blocks) {
    operations::Store stored;
    for (const auto block : blocks) stored.keys.push_back({block});
    const MutexLock lock(mutex_);
    blocks_.insert(blocks.begin(), blocks.end());
    publisher_.take(cache_, stored);
  }
  void remove(std::uint64_t block) {
    const MutexLock lock(mutex_);
    blocks_.erase(block);
    publisher_.take(cache_, operations::Remove{.tier = operations::Tier::Gpu, .keys = {{block}}});
  }
  // The engine restarts.
  void restart_engine() {
    const MutexLock lock(mutex_);
    blocks_.clear();
    publisher_.take(cache_, operations::Clear{});
    ++cache_.epoch;
  }
  [[nodiscard]] Blocks blocks() const {
    const MutexLock lock(mutex_);
    return blocks_;
  }
  [[nodiscard]] std::uint64_t relearns() const {
    const MutexLock lock(mutex_);
    return publisher_.statistics().relearns;
  }
  // The agent neither sends nor receives, like a stopped process.
  void freeze() { is_frozen_ = true; }
  void thaw() {
    is_frozen_ = false;
    inbox_->wake();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto event = inbox_->take(system_clock().now() + std::chrono::milliseconds(2));
      if (is_frozen_) continue;
      std::vector<publisher::Outgoing> ready;
      {
        const MutexLock lock(mutex_);
        const Instant now = system_clock().now();
        if (event) hear(*event, now);
        facts_.caught_up = now;
        publisher_.tell(cache_, facts_, {}, now);
        publisher_.step(now);
        ready = publisher_.take_ready(now);
      }
      for (const auto& one : ready) {
        const std::string subject = one.reader.empty()
                                        ? subjects_.events(stream_.worker, stream_.rank)
                                        : subjects_.replies(one.reader);
        connection_->publish(subject, sealer_.seal(subject, one.payload));
      }
    }
  }
  void hear(const nats::Event& event, Instant now) SL_REQUIRES(mutex_) {
    const auto* message = std::get_if<nats::Message>(&event);
    if (message == nullptr) return;
    const auto opened = sealer_.open(message->subject, message->payload, envelope::kAskVersion);
    if (!std::holds_alternative<std::string_view>(opened)) return;
    const auto ask = frames::decode(std::get<std::string_view>(opened));
    if (ask.ok()) publisher_.hear(*ask, now);
  }

  const frames::StreamName stream_;
  const contract::Subjects subjects_{"default/default", "0"};
  const envelope::Sealer sealer_{contract::development_identity_key(),
                                 {.scope = "default/default", .revision = "0", .fingerprint = "f"}};
  runtime::Metrics metrics_;
  Rng rng_;
  std::unique_ptr<nats::Connection> connection_;
  const std::shared_ptr<nats::Inbox> inbox_ = std::make_shared<nats::Inbox>(nats::Inbox::Limits{});
  std::atomic<bool> is_frozen_ = false;
  mutable Mutex mutex_;
  publisher::FramePublisher publisher_ SL_GUARDED_BY(mutex_);
  operations::CacheFacts facts_ SL_GUARDED_BY(mutex_);
  operations::CacheName cache_ SL_GUARDED_BY(mutex_){.worker = "w", .rank = 0, .epoch = 1};
  Blocks blocks_ SL_GUARDED_BY(mutex_);
  std::optional<WorkerThread> thread_;
};

}  // namespace sightline::test
