// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "router/replicas/frames/stream_message.h"

namespace sightline::test {

// A beat with a value in nearly every field.
inline frames::Beat full_beat() {
  frames::Beat beat;
  beat.digest.tiers[0].add({7});
  beat.digest.tiers[2].add({8});
  beat.facts.has_replay = true;
  beat.facts.block_size = 16;
  beat.facts.block_size_conflict = 32;
  beat.facts.missing.forgotten = false;
  beat.facts.missing.no_room = true;
  beat.facts.upper_bound = true;
  beat.facts.sequence = 99;
  beat.hearing = true;
  beat.trouble = "replaying events";
  beat.capped = true;
  beat.draining = true;
  beat.lag_by_stamp = std::chrono::milliseconds(3);
  return beat;
}

// One message of each kind, with every field set.
inline std::vector<frames::Message> every_replica_message() {
  const operations::Store root{
      .tier = operations::Tier::Gpu, .parent = {}, .keys = {{1}, {(1ULL << 61U) - 2}}};
  const operations::Store child{
      .tier = operations::Tier::Storage, .parent = keys::BlockKey{2}, .keys = {{3}}};
  const operations::Remove removal{.tier = operations::Tier::Cpu, .keys = {{4}, {5}}};
  const std::vector<operations::Operation> all = {root, child, removal, operations::Clear{}, root};

  frames::Frame frame{.instance = 11, .epoch = 12, .seq = 13, .operations = all, .beat = {}};
  frames::Frame beat{.instance = 11, .epoch = 12, .seq = 14, .operations = {}, .beat = full_beat()};
  frames::StreamAnswer answer;
  answer.nonce = 21;
  answer.agent = {.name = "host:1", .number = 11};
  answer.epoch = 12;
  answer.seq = 14;
  answer.state = full_beat();
  answer.caught_up_ago = std::chrono::milliseconds(5);
  frames::Offer offer{
      .dump = 31, .epoch = 12, .seq = 14, .chunks = 2, .checksum = 32, .digest = {}};
  offer.digest = full_beat().digest;

  const frames::Freshness fresh{.agent = 11, .number = 41};
  const std::vector<frames::Body> bodies = {
      frame,
      beat,
      frames::Bye{.instance = 11},
      frames::StreamQuestion{.nonce = 21, .reader = "r1", .look = true, .freshness = fresh},
      answer,
      frames::RangeAsk{.reader = "r1", .epoch = 12, .from = 3, .to = 9, .freshness = fresh},
      frames::DumpAsk{.reader = "r1", .epoch = 12, .freshness = fresh},
      offer,
      frames::ChunkAsk{.reader = "r1", .dump = 31, .chunks = {0, 5}, .freshness = fresh},
      frames::DumpChunk{.dump = 31, .chunk = 1, .operations = {root, child}},
      frames::NotAvailable{.what = frames::NotAvailable::MissingPart::Dump, .id = 31},
      frames::RelearnAsk{.reader = "r1", .epoch = 12, .freshness = fresh},
  };
  std::vector<frames::Message> messages;
  for (const auto& body : bodies) messages.push_back({{.worker = "w0", .rank = 3}, body});
  return messages;
}

}  // namespace sightline::test
