// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/rng.h"

#include "router/replicas/frames/stream_codec.h"
#include "router/replicas/publisher/frame_publisher.h"

// The naive side of the model: what an engine holds and what an agent published, as plain sets.
namespace sightline::test {

inline constexpr char kJointWorker[] = "w0";
inline constexpr std::uint64_t kKeysMax = 64;

// Which of the keys 0 to 63 are held on which tier.
using Content = std::bitset<operations::kTierCount * kKeysMax>;

inline std::size_t place_of(operations::Tier tier, keys::BlockKey key) {
  return static_cast<std::size_t>(tier) * kKeysMax + key.value;
}

inline void apply(Content& content, const operations::Operation& operation) {
  if (const auto* store = std::get_if<operations::Store>(&operation)) {
    for (const auto key : store->keys) content.set(place_of(store->tier, key));
  } else if (const auto* remove = std::get_if<operations::Remove>(&operation)) {
    for (const auto key : remove->keys) content.reset(place_of(remove->tier, key));
  } else {
    content.reset();
  }
}

// What each epoch of any agent held at each position, and when it ended.
struct History {
  struct Epoch {
    std::vector<Content> at;       // by position
    std::vector<Instant> since;    // by position: when it was ready to be sent
    bool is_agent_capped = false;  // it may have published less than it held
    std::optional<Instant> closed;
  };
  std::map<std::uint64_t, Epoch> epochs;
  std::string broken;
};

// A real FramePublisher beside one engine, with a record of its input and output.
class JointAgent {
 public:
  JointAgent(std::uint64_t number, Rng& rng, History& history)
      : instance{"agent " + std::to_string(number), number},
        options_(limits(rng)),
        publisher_({.worker = kJointWorker}, instance, options_, [&rng] { return rng.next(); }),
        history_(history) {}

  // All that the engine holds, of a cache that all see as a new one.
  void learn(const Content& engine, Instant now) {
    ++cache_.epoch;
    told_.reset();
    facts_.health = operations::FeedHealth::Replaying;
    tell(now);
    for (std::size_t i = 0; i < engine.size(); ++i) {
      if (!engine.test(i)) continue;
      take(operations::Store{.tier = static_cast<operations::Tier>(i / kKeysMax),
                             .parent = {},
                             .keys = {{i % kKeysMax}}});
    }
    facts_.health = operations::FeedHealth::Verified;
    is_lost_ = false;
    tell(now);
  }
  void take(const operations::Operation& operation) {
    publisher_.take(cache_, operation);
    apply(told_, operation);
  }
  void tell(Instant now) {
    facts_.missing = {.forgotten = false, .unknown_content = false, .no_room = false};
    if (facts_.health == operations::FeedHealth::Verified) facts_.caught_up = now;
    publisher_.tell(cache_, facts_, {}, now);
    note_epoch(now);
  }
  void hear_engine(bool hears, Instant now) {
    if (is_lost_) return;
    facts_.health = hears ? operations::FeedHealth::Verified : operations::FeedHealth::Disconnected;
    tell(now);
  }
  [[nodiscard]] bool hears_engine() const {
    return facts_.health == operations::FeedHealth::Verified;
  }
  void lose_continuity(Instant now) {
    publisher_.lose_continuity();
    is_lost_ = true;
    note_epoch(now);
  }
  [[nodiscard]] bool is_lost() const { return is_lost_; }
  void hear(const frames::Message& message, Instant now) {
    publisher_.hear(message, now);
    if (publisher_.take_look_wish()) tell(now);
  }
  [[nodiscard]] bool take_relearn_wish() { return publisher_.take_relearn_wish(); }

  std::vector<publisher::Outgoing> ready(Instant now) {
    if (now >= next_step_) {
      publisher_.step(now);
      next_step_ = now + kStepEvery;
    }
    auto sent = publisher_.take_ready(now);
    note(sent, now);
    if (!publisher_.held().is_capped()) uncapped_at_ = now;
    if (options_.flush_after == Duration{} && publisher_.epoch() && !is_lost_ &&
        history_.epochs.at(*publisher_.epoch()).at.back() != told_) {
      history_.broken = instance.name + " has told something else than it was told";
    }
    if (publisher_.memory_bytes() > memory_bytes_max()) history_.broken = "memory of an agent";
    return sent;
  }
  std::vector<publisher::Outgoing> bye(Instant now) {
    auto sent = publisher_.bye();
    note(sent, now);
    end(now);
    return sent;
  }
  void end(Instant now) {
    if (epoch_) close(*epoch_, now);
  }
  [[nodiscard]] Instant due(Instant now) const {
    const Instant due = publisher_.deadline().value_or(Instant::max());
    return std::max(now, publisher_.is_making_dump() ? std::min(due, next_step_) : due);
  }

  [[nodiscard]] std::optional<std::uint64_t> epoch() const { return publisher_.epoch(); }
  [[nodiscard]] std::uint64_t position() const { return publisher_.position(); }
  // Since before its last beat it has had no room for all blocks.
  [[nodiscard]] bool is_known_capped(Instant now) const {
    return now - uncapped_at_ > options_.beat_every + std::chrono::milliseconds(100);
  }
  [[nodiscard]] const Content& told() const { return told_; }
  [[nodiscard]] const publisher::PublisherStatistics& statistics() const {
    return publisher_.statistics();
  }

  frames::Instance instance;

 private:
  // Slower than the engine changes, so dumps are overtaken.
  static constexpr Duration kStepEvery = std::chrono::milliseconds(2);

  static publisher::PublisherOptions limits(Rng& rng) {
    publisher::PublisherOptions options;
    options.payload_bytes_max = 4'096;
    options.ring_bytes_max = 300 + rng.below(6'000);
    options.range_bytes_max = 300 + rng.below(4'000);
    options.flush_after = std::chrono::milliseconds(rng.below(2) == 0 ? 0 : rng.below(40));
    // A third of the agents have no room for all blocks.
    if (rng.below(3) == 0) options.blocks_max = 20 + rng.below(40);
    options.dump.chunk_bytes = frames::kFrameOverheadBytesMax + 65 + rng.below(400);
    options.dump.kept_max = 1 + rng.below(2);
    options.dump.shared_for = std::chrono::milliseconds(rng.below(2'000));
    options.dump.kept_for = std::chrono::milliseconds(200 + rng.below(5'000));
    options.dump.blocks_per_step = 1 + rng.below(4);
    options.dump.changed_max = 1 + rng.below(6);
    options.readers.asks_max = 50 + rng.below(450);
    return options;
  }
  // Of held blocks, the ring, frames to come and dumps. All are bounded.
  [[nodiscard]] std::size_t memory_bytes_max() const {
    constexpr std::size_t kBlocks = 400'000;  // the least that two lists take, for a dump's moment
    constexpr std::size_t kDumps = 60'000;
    return kBlocks + options_.ring_bytes_max + 2 * options_.payload_bytes_max + kDumps;
  }

  void note_epoch(Instant now) {
    if (publisher_.epoch() == epoch_) return;
    if (epoch_) close(*epoch_, now);
    epoch_ = publisher_.epoch();
    if (!epoch_) return;
    History::Epoch& begun = history_.epochs[*epoch_];
    begun.at = {told_};
    begun.since = {now};
  }
  void close(std::uint64_t epoch, Instant now) {
    auto& closed = history_.epochs.at(epoch).closed;
    if (!closed) closed = now;
  }
  void note(const std::vector<publisher::Outgoing>& sent, Instant now) {
    for (const auto& one : sent) {
      const auto message = frames::decode(one.payload);
      if (!message.ok()) history_.broken = "a message that cannot be read";
      const auto* frame = message.ok() ? std::get_if<frames::Frame>(&message->body) : nullptr;
      if (frame == nullptr || !one.reader.empty()) continue;
      History::Epoch& epoch = history_.epochs.at(frame->epoch);
      if (frame->seq != epoch.at.size()) history_.broken = "a position that is not the next";
      Content content = epoch.at.back();
      for (const auto& operation : frame->operations) apply(content, operation);
      epoch.at.push_back(content);
      epoch.since.push_back(now);
      epoch.is_agent_capped = epoch.is_agent_capped || publisher_.held().is_capped() ||
                              (frame->beat && frame->beat->capped);
    }
  }

  const publisher::PublisherOptions options_;
  publisher::FramePublisher publisher_;
  History& history_;
  operations::CacheName cache_{.worker = kJointWorker, .rank = 0, .epoch = 0};
  operations::CacheFacts facts_;
  Content told_;
  bool is_lost_ = false;
  Instant next_step_{};
  Instant uncapped_at_{};
  std::optional<std::uint64_t> epoch_;
};

}  // namespace sightline::test
