// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/frames/stream_codec.h"

#include "common/base/check.h"

#include "router/replicas/frames/fields.h"

namespace sightline::frames {

namespace {

using keys::BlockKey;
using operations::Clear;
using operations::Operation;
using operations::Remove;
using operations::Store;
using operations::Tier;

// These numbers are on the wire.
enum class OperationKind : std::uint8_t { Store, Remove, Clear };

// The overloads of write() and read() mirror each other field by field: the wire has no tags.
void write(FieldWriter& out, const Operation& operation) {
  if (const auto* store = std::get_if<Store>(&operation)) {
    out.integer(static_cast<std::uint8_t>(OperationKind::Store));
    out.integer(static_cast<std::uint8_t>(store->tier));
    out.flag(store->parent.has_value());
    out.integer(store->parent.value_or(BlockKey{}).value);
    out.keys(store->keys);
  } else if (const auto* remove = std::get_if<Remove>(&operation)) {
    out.integer(static_cast<std::uint8_t>(OperationKind::Remove));
    out.integer(static_cast<std::uint8_t>(remove->tier));
    out.keys(remove->keys);
  } else {
    out.integer(static_cast<std::uint8_t>(OperationKind::Clear));
  }
}

Tier read_tier(FieldReader& in) { return static_cast<Tier>(in.one_of(operations::kTierCount - 1)); }

Operation read_operation(FieldReader& in) {
  switch (static_cast<OperationKind>(in.one_of(2))) {
    case OperationKind::Store: {
      Store store;
      store.tier = read_tier(in);
      const auto parent = in.optional<std::uint64_t>();
      if (parent) store.parent = BlockKey{*parent};
      store.keys = in.keys();
      return store;
    }
    case OperationKind::Remove: {
      Remove remove;
      remove.tier = read_tier(in);
      remove.keys = in.keys();
      return remove;
    }
    case OperationKind::Clear:
      break;
  }
  return Clear{};
}

void write(FieldWriter& out, const std::vector<Operation>& operations) {
  out.integer(static_cast<std::uint32_t>(operations.size()));
  for (const Operation& operation : operations) write(out, operation);
}

// An operation can take one byte in a message, but takes 56 bytes in memory. So operations are read
// one by one, and no memory is reserved for the announced count.
std::vector<Operation> read_operations(FieldReader& in) {
  std::vector<Operation> operations;
  const std::size_t count = in.count(1);
  for (std::size_t i = 0; i < count && !in.is_broken(); ++i) {
    operations.push_back(read_operation(in));
    // A repeated Clear changes nothing, so agents send only one. A message full of them would take
    // 56 times its size in memory.
    const bool is_repeated = operations.size() > 1 &&
                             std::holds_alternative<Clear>(operations.back()) &&
                             std::holds_alternative<Clear>(operations[operations.size() - 2]);
    if (is_repeated) in.fail();
  }
  return operations;
}

// Always all tiers, in the order of Tier.
void write(FieldWriter& out, const operations::CacheDigest& digest) {
  for (const auto& tier : digest.tiers) {
    out.integer(tier.count);
    out.integer(tier.mixed_xor);
  }
}

operations::CacheDigest read_digest(FieldReader& in) {
  operations::CacheDigest digest;
  for (auto& tier : digest.tiers) {
    tier.count = in.integer<std::uint64_t>();
    tier.mixed_xor = in.integer<std::uint64_t>();
  }
  return digest;
}

// health, reason and caught_up are not sent: the router sets them from its own judgement. draining
// is a field of the beat.
void write(FieldWriter& out, const operations::CacheFacts& facts) {
  out.flag(facts.has_replay);
  out.optional(facts.block_size);
  out.optional(facts.block_size_conflict);
  out.flag(facts.missing.forgotten);
  out.flag(facts.missing.unknown_content);
  out.flag(facts.missing.no_room);
  out.flag(facts.replay_silent);
  out.flag(facts.upper_bound);
  out.optional(facts.sequence);
}

operations::CacheFacts read_facts(FieldReader& in) {
  operations::CacheFacts facts;
  facts.has_replay = in.flag();
  facts.block_size = in.optional<std::uint32_t>();
  facts.block_size_conflict = in.optional<std::uint32_t>();
  facts.missing.forgotten = in.flag();
  facts.missing.unknown_content = in.flag();
  facts.missing.no_room = in.flag();
  facts.replay_silent = in.flag();
  facts.upper_bound = in.flag();
  facts.sequence = in.optional<std::uint64_t>();
  return facts;
}

void write(FieldWriter& out, const Beat& beat) {
  write(out, beat.digest);
  write(out, beat.facts);
  out.flag(beat.hearing);
  // Cut at a whole character, because the reader rejects broken UTF-8.
  out.text(utf8_prefix(beat.trouble, kSentenceBytesMax), kSentenceBytesMax);
  out.flag(beat.capped);
  out.flag(beat.draining);
  out.optional_ms(beat.lag_by_stamp);
}

Beat read_beat(FieldReader& in) {
  Beat beat;
  beat.digest = read_digest(in);
  beat.facts = read_facts(in);
  beat.hearing = in.flag();
  beat.trouble = in.text(kSentenceBytesMax);
  beat.capped = in.flag();
  beat.draining = in.flag();
  beat.lag_by_stamp = in.optional_ms();
  return beat;
}

void write(FieldWriter& out, const Frame& frame) {
  out.integer(frame.instance);
  out.integer(frame.epoch);
  out.integer(frame.seq);
  write(out, frame.operations);
  out.flag(frame.beat.has_value());
  if (frame.beat) write(out, *frame.beat);
}

// A body of a known kind may still have wrong field values. Each read() breaks the reader then, and
// decode() rejects the message as a whole.
void read(FieldReader& in, Frame& frame) {
  frame.instance = in.integer<std::uint64_t>();
  frame.epoch = in.integer<std::uint64_t>();
  frame.seq = in.integer<std::uint64_t>();
  frame.operations = read_operations(in);
  if (in.flag()) frame.beat = read_beat(in);
}

void write(FieldWriter& out, const Bye& bye) { out.integer(bye.instance); }
void read(FieldReader& in, Bye& bye) { bye.instance = in.integer<std::uint64_t>(); }

void write(FieldWriter& out, const Freshness& freshness) {
  out.integer(freshness.agent);
  out.integer(freshness.number);
}

Freshness read_freshness(FieldReader& in) {
  Freshness freshness;
  freshness.agent = in.integer<std::uint64_t>();
  freshness.number = in.integer<std::uint64_t>();
  return freshness;
}

void write(FieldWriter& out, const StreamQuestion& question) {
  out.integer(question.nonce);
  out.name(question.reader);
  out.flag(question.look);
  write(out, question.freshness);
}

void read(FieldReader& in, StreamQuestion& question) {
  question.nonce = in.integer<std::uint64_t>();
  question.reader = in.name();
  question.look = in.flag();
  question.freshness = read_freshness(in);
}

void write(FieldWriter& out, const StreamAnswer& answer) {
  out.integer(answer.nonce);
  out.name(answer.agent.name);
  out.integer(answer.agent.number);
  out.optional(answer.epoch);
  out.integer(answer.seq);
  write(out, answer.state);
  out.optional_ms(answer.caught_up_ago);
}

void read(FieldReader& in, StreamAnswer& answer) {
  answer.nonce = in.integer<std::uint64_t>();
  answer.agent.name = in.name();
  answer.agent.number = in.integer<std::uint64_t>();
  answer.epoch = in.optional<std::uint64_t>();
  answer.seq = in.integer<std::uint64_t>();
  answer.state = read_beat(in);
  answer.caught_up_ago = in.optional_ms();
}

void write(FieldWriter& out, const RangeAsk& ask) {
  out.name(ask.reader);
  out.integer(ask.epoch);
  out.integer(ask.from);
  out.integer(ask.to);
  write(out, ask.freshness);
}

void read(FieldReader& in, RangeAsk& ask) {
  ask.reader = in.name();
  ask.epoch = in.integer<std::uint64_t>();
  ask.from = in.integer<std::uint64_t>();
  ask.to = in.integer<std::uint64_t>();
  ask.freshness = read_freshness(in);
  // Later code subtracts `from` from `to`.
  if (ask.to < ask.from) in.fail();
}

void write(FieldWriter& out, const DumpAsk& ask) {
  out.name(ask.reader);
  out.integer(ask.epoch);
  write(out, ask.freshness);
}

void read(FieldReader& in, DumpAsk& ask) {
  ask.reader = in.name();
  ask.epoch = in.integer<std::uint64_t>();
  ask.freshness = read_freshness(in);
}

void write(FieldWriter& out, const Offer& offer) {
  out.integer(offer.dump);
  out.integer(offer.epoch);
  out.integer(offer.seq);
  out.integer(offer.chunks);
  out.integer(offer.checksum);
  write(out, offer.digest);
}

void read(FieldReader& in, Offer& offer) {
  offer.dump = in.integer<std::uint64_t>();
  offer.epoch = in.integer<std::uint64_t>();
  offer.seq = in.integer<std::uint64_t>();
  offer.chunks = in.integer<std::uint32_t>();
  offer.checksum = in.integer<std::uint64_t>();
  offer.digest = read_digest(in);
}

void write(FieldWriter& out, const ChunkAsk& ask) {
  SL_CHECK(ask.chunks.size() <= kChunksPerAskMax);
  out.name(ask.reader);
  out.integer(ask.dump);
  out.integer(static_cast<std::uint32_t>(ask.chunks.size()));
  for (const auto chunk : ask.chunks) out.integer(chunk);
  write(out, ask.freshness);
}

void read(FieldReader& in, ChunkAsk& ask) {
  ask.reader = in.name();
  ask.dump = in.integer<std::uint64_t>();
  const std::size_t count = in.count(sizeof(std::uint32_t));
  // Limits the chunks that one short request makes an agent send.
  if (count > kChunksPerAskMax) return in.fail();
  ask.chunks.resize(count);
  for (auto& chunk : ask.chunks) chunk = in.integer<std::uint32_t>();
  ask.freshness = read_freshness(in);
}

void write(FieldWriter& out, const DumpChunk& chunk) {
  out.integer(chunk.dump);
  out.integer(chunk.chunk);
  write(out, chunk.operations);
}

void read(FieldReader& in, DumpChunk& chunk) {
  chunk.dump = in.integer<std::uint64_t>();
  chunk.chunk = in.integer<std::uint32_t>();
  chunk.operations = read_operations(in);
}

void write(FieldWriter& out, const NotAvailable& gone) {
  out.integer(static_cast<std::uint8_t>(gone.what));
  out.integer(gone.id);
}

void read(FieldReader& in, NotAvailable& gone) {
  // The last value of NotAvailable::MissingPart.
  gone.what = static_cast<NotAvailable::MissingPart>(in.one_of(2));
  gone.id = in.integer<std::uint64_t>();
}

void write(FieldWriter& out, const RelearnAsk& ask) {
  out.name(ask.reader);
  out.integer(ask.epoch);
  write(out, ask.freshness);
}

void read(FieldReader& in, RelearnAsk& ask) {
  ask.reader = in.name();
  ask.epoch = in.integer<std::uint64_t>();
  ask.freshness = read_freshness(in);
}

// Reads the body with this index in Body.
template <std::size_t I = 0>
Body read_body(FieldReader& in, std::size_t kind) {
  if constexpr (I < std::variant_size_v<Body>) {
    if (kind != I) return read_body<I + 1>(in, kind);
    std::variant_alternative_t<I, Body> body;
    read(in, body);
    return body;
  } else {
    in.fail();
    return Frame{};
  }
}

std::size_t keys_of(const Operation& operation) {
  if (const auto* store = std::get_if<Store>(&operation)) return store->keys.size();
  if (const auto* remove = std::get_if<Remove>(&operation)) return remove->keys.size();
  return 0;
}

}  // namespace

// The stream's name is outside of the body: every kind has it at the same place.
std::string encode(const Message& message) {
  FieldWriter out;
  out.integer(static_cast<std::uint8_t>(message.body.index()));
  out.name(message.stream.worker);
  out.integer(message.stream.rank);
  std::visit([&](const auto& body) { write(out, body); }, message.body);
  return out.take();
}

Result<Message> decode(std::string_view bytes) {
  if (bytes.size() > kMessageBytesMax) {
    return worker_error(ErrorCode::TooLarge, "a replica's message is larger than the limit", false);
  }
  FieldReader in(bytes);
  const auto kind = in.integer<std::uint8_t>();
  Message message;
  message.stream.worker = in.name();
  message.stream.rank = in.integer<std::uint32_t>();
  message.body = read_body(in, kind);
  // Bytes behind the body break the format as well. So a message cannot carry hidden data.
  if (!in.is_whole()) {
    return worker_error(ErrorCode::Corrupt, "a replica's message is malformed", false);
  }
  return message;
}

std::size_t encoded_bytes(const Operation& operation) {
  return kOperationBytes + keys_of(operation) * kKeyBytes;
}

}  // namespace sightline::frames
