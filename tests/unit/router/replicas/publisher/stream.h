// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/replicas/frames/stream_codec.h"
#include "router/replicas/publisher/frame_publisher.h"

namespace sightline::publisher::test {

using frames::Body;
using frames::ChunkAsk;
using frames::DumpChunk;
using frames::Frame;
using frames::Offer;
using keys::BlockKey;
using operations::CacheDigest;
using operations::CacheFacts;
using operations::CacheName;
using operations::Clear;
using operations::FeedHealth;
using operations::Operation;
using operations::Remove;
using operations::Store;
using operations::Tier;

inline CacheFacts verified() {
  CacheFacts facts;
  facts.health = FeedHealth::Verified;
  return facts;
}

inline std::vector<BlockKey> keys_from(std::uint64_t first, std::size_t count) {
  std::vector<BlockKey> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = {first + i};
  return keys;
}

inline Operation stored(std::uint64_t first, std::size_t count = 1) {
  return Store{.tier = Tier::Gpu, .parent = {}, .keys = keys_from(first, count)};
}

// The content of a cache in the simplest form.
struct Model {
  std::set<std::pair<std::uint64_t, Tier>> blocks;

  void apply(const Operation& operation) {
    if (std::holds_alternative<Clear>(operation)) blocks.clear();
    if (const auto* store = std::get_if<Store>(&operation)) {
      for (const auto key : store->keys) blocks.insert({key.value, store->tier});
    }
    if (const auto* remove = std::get_if<Remove>(&operation)) {
      for (const auto key : remove->keys) blocks.erase({key.value, remove->tier});
    }
  }
  [[nodiscard]] CacheDigest digest() const {
    CacheDigest digest;
    for (const auto& [key, tier] : blocks) digest.of(tier).add({key});
    return digest;
  }
};

inline constexpr std::uint64_t kAgent = 77;  // Instance::number

// A publisher, its clock, and all that it sent.
struct Stream {
  explicit Stream(PublisherOptions options = {}, std::uint64_t seed = 1)
      : rng(seed),
        publisher({.worker = "w0", .rank = 2}, {.name = "agent", .number = kAgent},
                  std::move(options), [this] { return rng.next(); }) {}

  void take(const Operation& operation) { publisher.take(cache, operation); }
  void tell(const CacheFacts& facts) { publisher.tell(cache, facts, {}, now); }
  // A request of a router that receives this stream, newer than all before.
  void hear(Body body) {
    fresh(body, ++asks);
    publisher.hear({.stream = stream, .body = std::move(body)}, now);
  }
  // Unchanged: a message from another agent's time, or a recorded one.
  void hear_as_it_is(const Body& body) { publisher.hear({.stream = stream, .body = body}, now); }
  static void fresh(Body& body, std::uint64_t number) {
    std::visit(
        [&](auto& ask) {
          if constexpr (requires { ask.freshness; }) {
            ask.freshness = {.agent = kAgent, .number = number};
          }
        },
        body);
  }

  // The messages that are ready for the reader, all decodable.
  std::vector<Body> sent_to(const std::string& reader) {
    for (auto& message : publisher.take_ready(now)) {
      EXPECT_LE(message.payload.size(), bytes_max);
      const auto read = frames::decode(message.payload);
      EXPECT_TRUE(read.ok());
      EXPECT_EQ(read->stream, stream);
      sent.emplace_back(message.reader, read->body);
    }
    std::vector<Body> found;
    std::erase_if(sent, [&](const auto& one) {
      if (one.first == reader) found.push_back(one.second);
      return one.first == reader;
    });
    return found;
  }
  std::vector<Frame> frames() {
    std::vector<Frame> found;
    for (const Body& body : sent_to("")) found.push_back(std::get<Frame>(body));
    return found;
  }
  template <class T>
  T only(const std::string& reader) {
    const auto found = sent_to(reader);
    EXPECT_EQ(found.size(), 1U);
    if (found.size() != 1 || !std::holds_alternative<T>(found[0])) {
      ADD_FAILURE() << "another answer than expected";
      return {};
    }
    return std::get<T>(found[0]);
  }
  void finish_dump() {
    while (publisher.is_making_dump()) publisher.step(now);
  }
  // The content of the dump. Checks its checksum and digest.
  Model pulled(const Offer& offer, const std::string& reader) {
    Model model;
    frames::Checksum checksum;
    for (std::uint32_t i = 0; i < offer.chunks; ++i) {
      hear(ChunkAsk{.reader = reader, .dump = offer.dump, .chunks = {i}});
      const auto chunk = only<DumpChunk>(reader);
      EXPECT_EQ(chunk.chunk, i);
      for (const Operation& operation : chunk.operations) {
        checksum.add(operation);
        model.apply(operation);
      }
    }
    EXPECT_EQ(checksum.value(), offer.checksum);
    EXPECT_EQ(model.digest(), offer.digest);
    return model;
  }

  frames::StreamName stream{.worker = "w0", .rank = 2};
  CacheName cache{.worker = "w0", .rank = 2, .epoch = 5};
  Instant now{std::chrono::hours(1)};
  std::size_t bytes_max = PublisherOptions{}.payload_bytes_max;
  Rng rng;
  std::uint64_t asks = 0;
  FramePublisher publisher;
  std::vector<std::pair<std::string, Body>> sent;
};

}  // namespace sightline::publisher::test
