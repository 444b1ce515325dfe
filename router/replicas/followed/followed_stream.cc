// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/followed/followed_stream.h"

#include <utility>
#include <variant>

#include "router/replicas/frames/stream_codec.h"

namespace sightline::followed {
namespace {

constexpr char kNeverConnected[] = "NATS is not connected yet: messages of its agent do not arrive";

Refusal refusal_of(envelope::Refusal refusal) {
  switch (refusal) {
    case envelope::Refusal::TooShort:
      return Refusal::TooShort;
    case envelope::Refusal::OtherVersion:
      return Refusal::OtherVersion;
    case envelope::Refusal::WrongTag:
      return Refusal::WrongTag;
  }
  return Refusal::WrongTag;
}

}  // namespace

std::string_view name_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::TooShort:
      return name_of(envelope::Refusal::TooShort);
    case Refusal::OtherVersion:
      return name_of(envelope::Refusal::OtherVersion);
    case Refusal::WrongTag:
      return name_of(envelope::Refusal::WrongTag);
    case Refusal::Malformed:
      return "malformed";
    case Refusal::OtherStream:
      return "other-stream";
  }
  return "";
}

FollowedStream::FollowedStream(CacheId cache, follower::FollowerSetup setup, const Deps& deps)
    : cache_(cache),
      setup_(std::move(setup)),
      deps_(deps),
      events_(deps.subjects.events(setup_.stream.worker, setup_.stream.rank)),
      asks_(deps.subjects.asks(setup_.stream.worker, setup_.stream.rank)),
      replies_(deps.subjects.replies(setup_.reader)),
      sink_(cache, deps.index, &deps.removals, index::Reclaim::Later) {}

bool FollowedStream::take(const nats::Event& event, Instant now) {
  if (const auto* message = std::get_if<nats::Message>(&event)) return hear(*message, now);
  if (const auto* there = std::get_if<nats::Connected>(&event)) {
    connected(*there, now);
  } else if (!follower_) {
    return false;
    // Before the first connection there is nothing to lose.
  } else if (const auto* lost = std::get_if<nats::Lost>(&event)) {
    lost_ += lost->messages;
    ++losses_;
    follower_->messages_lost(now);
  } else {
    is_away_ = true;
    follower_->nats_lost(now);
  }
  return true;
}

void FollowedStream::connected(const nats::Connected& connected, Instant now) {
  if (!follower_) {
    follower::HeldBlocks& held = *this;
    follower_.emplace(setup_, held, sink_, now);
  } else if (connected.subject.empty() && std::exchange(is_away_, false)) {
    follower_->nats_healed(now);
  } else {
    // Until now only one of the two subjects was received.
    follower_->messages_lost(now);
  }
}

bool FollowedStream::hear(const nats::Message& message, Instant now) {
  // The tag is checked before a byte is decoded. An outsider's bytes never reach the decoder.
  const auto opened = deps_.sealer.open(message.subject, message.payload);
  if (const auto* refusal = std::get_if<envelope::Refusal>(&opened)) {
    return refuse(refusal_of(*refusal));
  }
  auto decoded = frames::decode(std::get<std::string_view>(opened));
  if (!decoded.ok()) return refuse(Refusal::Malformed);
  // The subject is not secret. A message about another stream must not change this one.
  if (decoded->stream != setup_.stream) return refuse(Refusal::OtherStream);
  if (!follower_) return false;  // the subscriptions are not confirmed yet
  return follower_->hear(std::move(decoded->body), now);
}

void FollowedStream::turn(Instant now) {
  if (!follower_) return;
  for (auto& ask : follower_->turn(now)) {
    const std::string payload = frames::encode({.stream = setup_.stream, .body = std::move(ask)});
    deps_.send(asks_, deps_.sealer.seal(asks_, payload, envelope::kAskVersion));
  }
  // Every announcement of the engine raises the sequence, also one that changes no block.
  const auto sequence = follower_->facts().sequence;
  if (std::exchange(sequence_, sequence) != sequence && sequence) news_at_ = now;
}

Instant FollowedStream::deadline() const {
  return follower_ ? follower_->deadline() : Instant::max();
}

void FollowedStream::look(Instant now) {
  if (follower_) follower_->look(now);
}

void FollowedStream::relearn(Instant now) {
  // If it is too soon, the follower counts that. The audit will find the contradiction again.
  if (follower_) follower_->relearn(now);
}

void FollowedStream::ask_again(Instant now) {
  if (follower_) follower_->ask_again(now);
}

void FollowedStream::forget() {
  sink_.take({.worker = setup_.stream.worker, .rank = setup_.stream.rank}, operations::Clear{});
}

FollowedStatus FollowedStream::status() const {
  FollowedStatus status;
  status.cache = cache_;
  status.stream = setup_.stream;
  if (follower_) {
    status.facts = follower_->facts();
    status.at = follower_->status();
    status.statistics = follower_->statistics();
  } else {
    status.facts.health = operations::FeedHealth::ToldBadly;
    status.facts.reason = kNeverConnected;
  }
  status.refused = refused_;
  status.lost = lost_;
  status.losses = losses_;
  status.news_at = news_at_;
  return status;
}

}  // namespace sightline::followed
