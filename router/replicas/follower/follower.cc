// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/follower/follower.h"

#include <algorithm>
#include <utility>

namespace sightline::follower {

namespace {

// Answers whose positions are not applied yet. Each carries a time for caught_up, and more of them
// bring nothing new.
constexpr std::size_t kCatchingUpMax = 8;

constexpr std::string_view kDumpTooLong =
    "its agent's snapshot has more blocks than announced: refused";
constexpr std::string_view kDumpBeyondEngine =
    "its agent's snapshot has more blocks than its engine (gpu_blocks): refused";

// Several questions must fit into stale_after, even a short one. Otherwise one lost answer would
// make the stream stale.
FollowerOptions fitted(FollowerOptions options) {
  options.question_every = std::min(options.question_every, options.stale_after / 5);
  options.answer_late_after = std::min(options.answer_late_after, 2 * options.question_every);
  return options;
}

}  // namespace

FrameFollower::FrameFollower(FollowerSetup setup, HeldBlocks& held, operations::OperationSink& sink,
                             Instant now)
    : stream_(std::move(setup.stream)),
      reader_(std::move(setup.reader)),
      options_(fitted(setup.options)),
      to_wall_(setup.to_wall),
      held_(held),
      sink_(sink),
      rng_(setup.seed),
      agents_(options_),
      waiting_(options_.waiting_bytes_max, options_.held),
      pull_(options_, reader_),
      answered_at_(now),
      good_at_(now),
      listening_since_(now),
      next_question_(now),
      question_pause_(options_.question_pause_min),
      range_(options_.range_retry_min, options_.range_retry_max),
      dump_(options_.dump_retry_min, options_.dump_retry_max),
      relearn_(options_.relearn_pause_min, options_.relearn_pause_max) {}

bool FrameFollower::hear(frames::Body message, Instant now) {
  is_dropped_ = false;
  std::visit([&](auto& body) { hear_one(body, now); }, message);
  settle_caught_up();
  return !is_dropped_;
}

void FrameFollower::hear_one(frames::Frame& frame, Instant now) {
  // The agent may have restarted. A question shows which agent serves the stream.
  if (!followed_ || frame.instance != followed_->agent.number) {
    drop(Drop::OtherAgent);
    return urge(now);
  }
  if (frame.epoch != followed_->epoch) {
    drop(Drop::OtherEpoch);
    return urge(now);
  }
  if (frame.seq == 0) return drop(Drop::Malformed);
  // The newest beat counts for the reason that people read, even if its frame cannot be applied
  // yet.
  if (frame.beat && frame.seq > state_seq_) {
    state_ = frame.beat;
    state_seq_ = frame.seq;
  }
  // A dump in progress will contain all frames up to its position.
  const std::uint64_t known = pull_.is_on() ? pull_.offer().seq : position_.value_or(0);
  if (frame.seq <= known) return drop(Drop::Repeated);
  const std::uint64_t seq = frame.seq;
  if (position_ && seq == *position_ + 1) {
    apply(frame, now);
    apply_waiting(now);
  } else if (const auto why = waiting_.keep(std::move(frame))) {
    drop(*why);
  }
  note_head(seq, now);
}

void FrameFollower::hear_one(frames::Bye& bye, Instant now) {
  agents_.ended(bye.instance);
  if (answered_ && answered_->number == bye.instance && !has_ended_) {
    has_ended_ = true;
    dead_since_ = now;
  }
  // Nothing of this agent is applied from here on.
  if (followed_ && followed_->agent.number == bye.instance) unfollow();
  urge(now);
}

void FrameFollower::hear_one(frames::StreamAnswer& answer, Instant now) {
  const bool was_contested = agents_.is_contested();
  const auto heard = agents_.answered(answer.agent, answer.nonce, now);
  if (heard.verdict == Agents::AgentVerdict::Stale) return drop(Drop::StaleAnswer);
  if (heard.verdict == Agents::AgentVerdict::Ended) return drop(Drop::EndedAgent);
  note_answer(answer, heard.asked_at);
  const bool is_followed = followed_ && followed_->agent.number == answer.agent.number;
  if (agents_.is_contested()) {
    if (!was_contested) ++statistics_.contests;
    // It is not known which agent's blocks are the engine's. So no blocks count until one agent is
    // silent.
    is_doubted_ = true;
    return urge(now);
  }
  if (is_followed && answer.epoch == followed_->epoch) {
    return continue_with(answer, heard.asked_at, now);
  }
  unfollow();
  state_ = answer.state;
  state_seq_ = answer.seq;
  // A dump costs the agent work. It is not worth it without proof, or while the view ages because
  // no events of the engine arrive.
  if (answer.epoch && answer.state.hearing) follow(answer, heard.asked_at, now);
}

void FrameFollower::note_answer(const frames::StreamAnswer& answer, Instant asked_at) {
  answered_ = answer.agent;
  answered_at_ = std::max(answered_at_, asked_at);
  dead_since_.reset();
  has_ended_ = false;
}

// The answer has the state at its position. A position beyond the applied one shows a gap.
void FrameFollower::continue_with(const frames::StreamAnswer& answer, Instant asked_at,
                                  Instant now) {
  if (answer.seq >= state_seq_) {
    state_ = answer.state;
    state_seq_ = answer.seq;
  }
  if (answer.state.hearing) {
    good_at_ = std::max(good_at_, asked_at);
    was_good_ = true;
  }
  // The question's time is our own clock's. The agent sends only a difference, so no clocks of two
  // machines are compared.
  if (answer.caught_up_ago && to_catch_up_.size() < kCatchingUpMax) {
    to_catch_up_.push_back({.seq = answer.seq, .at = asked_at - *answer.caught_up_ago});
  }
  if (position_ == answer.seq) judge(answer.state, now);
  note_head(answer.seq, now);
}

void FrameFollower::follow(const frames::StreamAnswer& answer, Instant asked_at, Instant now) {
  ++statistics_.epochs;
  followed_ = Followed{.agent = answer.agent, .epoch = *answer.epoch};
  head_ = answer.seq;
  good_at_ = std::max(good_at_, asked_at);
  was_good_ = true;
  question_pause_ = options_.question_pause_min;
  if (answer.caught_up_ago) {
    to_catch_up_.push_back({.seq = answer.seq, .at = asked_at - *answer.caught_up_ago});
  }
  start_dump(now);
}

// The held blocks stay, but do not count, until a dump replaces them or forget() drops them.
void FrameFollower::unfollow() {
  followed_.reset();
  position_.reset();
  head_ = 0;
  waiting_.clear();
  pull_.end();
  range_.stop();
  dump_.stop();
  is_relearn_wanted_ = false;
  is_doubted_ = true;
  caught_up_.reset();
  to_catch_up_.clear();
}

void FrameFollower::forget(Instant now) {
  ++statistics_.forgotten;
  unfollow();
  sink_.take(*name_, operations::Clear{});
  name_.reset();
  urge(now);
}

void FrameFollower::start_dump(Instant now) {
  position_.reset();
  is_doubted_ = true;
  pull_.end();
  range_.stop();
  // Several routers may notice the same gap. They ask at random moments within gap_spread.
  dump_.start(now + part_of(options_.gap_spread));
}

void FrameFollower::fail_dump(Instant now, std::string_view why) {
  ++statistics_.dumps_failed;
  dump_trouble_ = why;
  start_dump(now);
}

void FrameFollower::ask_again(Instant now) {
  // Without a position, a dump is due already.
  if (position_) start_dump(now);
}

void FrameFollower::hear_one(frames::Offer& offer, Instant now) {
  if (!followed_ || offer.epoch != followed_->epoch) return drop(Drop::OtherEpoch);
  if (position_ || pull_.is_on()) return drop(Drop::OtherDump);
  dump_.stop();
  // A dump with more GPU blocks than the engine has is wrong in any case. It would fill the index
  // with blocks that no engine holds.
  const auto engine_blocks = held_.engine_blocks();
  if (engine_blocks && offer.digest.of(operations::Tier::Gpu).count > *engine_blocks) {
    return fail_dump(now, kDumpBeyondEngine);
  }
  pull_.begin(offer, now);
  if (pull_.is_too_long()) return fail_dump(now, kDumpTooLong);
  waiting_.drop_through(offer.seq);
  if (pull_.is_whole()) finish_dump(now);
}

void FrameFollower::hear_one(frames::DumpChunk& chunk, Instant now) {
  if (const auto why = pull_.hear(std::move(chunk), now)) {
    drop(*why);
    if (pull_.is_too_long()) fail_dump(now, kDumpTooLong);
    return;
  }
  apply_chunks(now);
}

void FrameFollower::apply_chunks(Instant now) {
  while (auto operations = pull_.next()) {
    // The dump replaces the old blocks, so they are dropped before its first chunk is applied.
    if (pull_.is_first()) empty_held();
    for (const auto& operation : *operations) sink_.take(*name_, operation);
    statistics_.operations += operations->size();
  }
  if (pull_.is_whole()) finish_dump(now);
}

void FrameFollower::empty_held() {
  operations::CacheName name{
      .worker = stream_.worker, .rank = stream_.rank, .epoch = followed_->epoch};
  // The old epoch's blocks must not stay under another name.
  if (name_ && *name_ != name) sink_.take(*name_, operations::Clear{});
  name_ = std::move(name);
  sink_.take(*name_, operations::Clear{});
}

void FrameFollower::finish_dump(Instant now) {
  const frames::Offer offer = pull_.offer();
  const bool is_as_offered = pull_.is_as_offered();
  if (offer.chunks == 0) empty_held();
  pull_.end();
  // The checksum compares the received operations. The digest below compares the blocks that the
  // index holds after them.
  if (!is_as_offered) return fail_dump(now);
  // An index without room for all blocks cannot have the agent's digest.
  if (held_.refused() > 0) {
    ++statistics_.digests_capped;
  } else if (held_.digest() != offer.digest) {
    ++statistics_.digests_unequal;
    return fail_dump(now);
  } else {
    ++statistics_.digests_equal;
    digest_equal_at_ = now;
  }
  ++statistics_.dumps;
  dump_trouble_ = {};
  is_doubted_ = false;
  position_ = offer.seq;
  waiting_.drop_through(offer.seq);
  apply_waiting(now);
  note_head(offer.seq, now);
}

void FrameFollower::hear_one(frames::NotAvailable& gone, Instant now) {
  switch (gone.what) {
    case frames::NotAvailable::MissingPart::Epoch:
      if (!followed_ || gone.id != followed_->epoch) return drop(Drop::OtherEpoch);
      unfollow();
      return urge(now);
    case frames::NotAvailable::MissingPart::Range:
      if (!followed_ || gone.id != followed_->epoch) return drop(Drop::OtherEpoch);
      // This refusal is late: the gap has been filled.
      if (!range_.was_asked()) return drop(Drop::OtherDump);
      return start_dump(now);
    case frames::NotAvailable::MissingPart::Dump:
      if (!pull_.is_on() || gone.id != pull_.offer().dump) return drop(Drop::OtherDump);
      return fail_dump(now);
  }
}

void FrameFollower::apply(const frames::Frame& frame, Instant now) {
  for (const auto& operation : frame.operations) sink_.take(*name_, operation);
  statistics_.operations += frame.operations.size();
  ++statistics_.frames;
  position_ = frame.seq;
  if (frame.beat) judge(*frame.beat, now);
}

// The loop ends when a digest is unequal: position_ is absent then, and a dump is due.
void FrameFollower::apply_waiting(Instant now) {
  while (position_) {
    const auto frame = waiting_.take(*position_ + 1);
    if (!frame) return;
    apply(*frame, now);
  }
}

void FrameFollower::note_head(std::uint64_t seq, Instant now) {
  head_ = std::max(head_, seq);
  settle_range(now);
}

void FrameFollower::settle_range(Instant now) {
  if (!has_gap()) {
    range_.stop();
    return range_.reset();
  }
  if (range_.was_asked() && *position_ >= range_end_) {
    // The requested part came as a whole. The next part is requested immediately.
    range_.stop();
    range_.reset();
    return range_.start(now);
  }
  if (range_.is_on()) return;
  // A gap may close without a request, when frames arrive in another order. So the first request
  // waits.
  ++statistics_.gaps;
  range_.start(now + part_of(options_.gap_spread));
}

void FrameFollower::settle_caught_up() {
  while (position_ && !to_catch_up_.empty() && to_catch_up_.front().seq <= *position_) {
    // The positions of answers may be applied in steps, so the newest time wins.
    const Instant at = to_catch_up_.front().at;
    caught_up_ = caught_up_ ? std::max(*caught_up_, at) : at;
    to_catch_up_.pop_front();
  }
}

void FrameFollower::judge(const frames::Beat& beat, Instant now) {
  if (held_.refused() > 0 || beat.capped) {
    // The digests are not comparable. But no frame was missed, so the held blocks are a part of the
    // agent's.
    ++statistics_.digests_capped;
    is_doubted_ = agents_.is_contested();
  } else if (held_.digest() == beat.digest) {
    ++statistics_.digests_equal;
    digest_equal_at_ = now;
    is_doubted_ = agents_.is_contested();
    dump_.reset();
  } else {
    ++statistics_.digests_unequal;
    start_dump(now);
  }
}

void FrameFollower::judge_age(Instant now) {
  const Duration age = now - good_at_;
  is_stale_ = age >= options_.stale_after;
  // When the stream is fresh again, the next beat or dump must end the doubt first.
  if (is_stale_) is_doubted_ = true;
  is_nats_late_ = nats_fresh_at_ && now - *nats_fresh_at_ >= options_.stale_after;
  // While NATS is late, the silence of an agent proves nothing.
  if (is_nats_late_) listening_since_ = now;
  is_silent_ = now >= silent_at();
  if (!dead_since_ && is_dead()) dead_since_ = answered_at_;
  if (name_ && age >= options_.dropped_after) forget(now);
}

}  // namespace sightline::follower
