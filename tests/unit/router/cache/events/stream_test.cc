// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/stream.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/base/json.h"
#include "common/base/rng.h"

#include "tests/support/captures.h"

namespace sightline::events {
namespace {

using Sequences = std::vector<std::uint64_t>;

// Message `sequence` of one life of a publisher.
EventMessage message(std::uint64_t sequence, std::uint8_t life = 0) {
  return {.sequence = sequence, .payload = {life, static_cast<std::uint8_t>(sequence), 1}};
}

Sequences applied(const StreamStep& step) {
  Sequences sequences;
  for (const auto& item : step.apply) sequences.push_back(item.sequence);
  return sequences;
}

EventStream with_replay() { return EventStream({.replay_available = true}); }
EventStream without_replay() { return EventStream(StreamOptions{}); }

// A stream with replay that has applied 0 … last and is live.
EventStream live_after(std::uint64_t last) {
  auto stream = with_replay();
  stream.start();
  for (std::uint64_t i = 0; i <= last; ++i) stream.replayed(message(i));
  EXPECT_EQ(stream.replay_ended(false).replay_from, last);
  stream.replayed(message(last));
  stream.replay_ended(false);
  EXPECT_FALSE(stream.replaying());
  return stream;
}

// Silence after each request. Returns the last step.
StreamStep stay_silent(EventStream& stream) {
  StreamStep step;
  for (int asked = 0; stream.replaying() && asked < 100; ++asked) step = stream.replay_ended(true);
  EXPECT_FALSE(stream.replaying());
  return step;
}

TEST(EventStream, WithoutReplayItAppliesFromTheFirstMessageOn) {
  auto stream = without_replay();
  EXPECT_FALSE(stream.start().replay_from.has_value());
  EXPECT_EQ(applied(stream.live(message(0))), Sequences{0});
  EXPECT_EQ(applied(stream.live(message(1))), Sequences{1});
  EXPECT_EQ(stream.last_sequence(), 1U);
  EXPECT_EQ(stream.statistics().late_joins, 0U);
}

TEST(EventStream, WithoutReplayAGapDropsTheStateAndGoesOn) {
  auto stream = without_replay();
  stream.live(message(0));
  const auto step = stream.live(message(2));
  EXPECT_TRUE(step.drop);
  EXPECT_EQ(applied(step), Sequences{2});
  EXPECT_EQ(stream.statistics().gaps, 1U);
  EXPECT_EQ(stream.statistics().drops, 1U);
}

TEST(EventStream, JoiningLateIsCounted) {
  auto stream = without_replay();
  const auto step = stream.live(message(7));
  EXPECT_FALSE(step.drop);
  EXPECT_EQ(applied(step), Sequences{7});
  EXPECT_EQ(stream.statistics().late_joins, 1U);
  EXPECT_EQ(stream.statistics().gaps, 0U);
}

TEST(EventStream, RequestsTheBeginningUntilAnswersReachLiveMessages) {
  auto stream = with_replay();
  EXPECT_EQ(stream.start().replay_from, 0U);
  EXPECT_TRUE(stream.replaying());
  EXPECT_TRUE(stream.live(message(2)).apply.empty());
  EXPECT_TRUE(stream.live(message(3)).apply.empty());
  EXPECT_EQ(applied(stream.replayed(message(0))), Sequences{0});
  EXPECT_EQ(applied(stream.replayed(message(1))), Sequences{1});
  EXPECT_TRUE(stream.replaying());
  const auto met = stream.replayed(message(2));
  EXPECT_FALSE(met.drop);
  EXPECT_EQ(applied(met), (Sequences{2, 3}));
  EXPECT_EQ(stream.statistics().duplicates, 1U);
  EXPECT_FALSE(stream.replaying());
}

TEST(EventStream, AReplayThatBeginsLateIsALateJoin) {
  auto stream = with_replay();
  stream.start();
  const auto step = stream.replayed(message(50));
  EXPECT_FALSE(step.drop);
  EXPECT_EQ(applied(step), Sequences{50});
  EXPECT_EQ(stream.statistics().late_joins, 1U);
}

TEST(EventStream, AReplayThatGoesBackwardsIsIgnored) {
  auto stream = with_replay();
  stream.start();
  stream.replayed(message(3));
  const auto step = stream.replayed(message(2));
  EXPECT_FALSE(step.drop);
  EXPECT_TRUE(step.apply.empty());
}

TEST(EventStream, AnEmptyReplayLeadsToLiveMessages) {
  auto stream = with_replay();
  stream.start();
  EXPECT_TRUE(stream.replay_ended(false).apply.empty());
  EXPECT_EQ(applied(stream.live(message(0))), Sequences{0});
}

TEST(EventStream, RequestsAgainAfterALateEngineStart) {
  auto stream = with_replay();
  stream.start();
  EXPECT_EQ(stream.replay_ended(true).replay_from, 0U);
  EXPECT_EQ(stream.statistics().replay_timeouts, 1U);
  stream.live(message(2));
  stream.replayed(message(0));
  stream.replayed(message(1));
  EXPECT_EQ(applied(stream.replay_ended(false)), Sequences{2});
  EXPECT_EQ(stream.statistics().late_joins, 0U);
}

TEST(EventStream, AReconnectWithoutReplayDropsWhatNothingVouchesFor) {
  auto stream = without_replay();
  EXPECT_FALSE(stream.reconnected(true).drop);  // nothing is held before the first message
  stream.live(message(0));
  const auto step = stream.reconnected(true);
  EXPECT_TRUE(step.drop);
  EXPECT_FALSE(step.replay_from.has_value());
  EXPECT_EQ(applied(stream.live(message(1, 9))), Sequences{1});
  EXPECT_EQ(stream.statistics().drops, 1U);
}

TEST(EventStream, AReconnectForgetsMessagesThatWaitedOnTheLostConnection) {
  auto stream = live_after(4);
  stream.live(message(7));  // of the old life, waits for 5 and 6
  EXPECT_EQ(stream.reconnected(true).replay_from, 4U);
  EXPECT_TRUE(stream.replayed(message(4, 9)).drop);
  for (std::uint64_t i = 0; i < 3; ++i) stream.replayed(message(i, 9));
  const auto end = stream.replay_ended(false);
  EXPECT_TRUE(end.apply.empty());
  EXPECT_EQ(stream.last_sequence(), 2U) << "of the new life";
}

TEST(EventStream, MessagesOfPossiblyTwoLivesCauseARelearn) {
  auto stream = live_after(4);
  stream.live(message(5, 9));  // of the new life, but with the next number
  const auto step = stream.reconnected(false);
  EXPECT_TRUE(step.drop);
  EXPECT_EQ(step.replay_from, 0U);
  EXPECT_EQ(applied(stream.replayed(message(0, 9))), Sequences{0});
}

TEST(EventStream, StopsRequestingMessagesOlderThanTheReplay) {
  auto stream = live_after(0);
  auto step = stream.live(message(2));
  int asked = 0;
  for (; step.replay_from && asked < 100; ++asked) {
    EXPECT_EQ(step.replay_from, 0U);
    EXPECT_FALSE(step.drop);
    stream.replayed(message(0));
    step = stream.replayed(message(2));
  }
  EXPECT_LT(asked, 10);
  EXPECT_TRUE(step.drop) << "1 is lost for the replay too";
  EXPECT_FALSE(stream.replaying());
  EXPECT_EQ(stream.live(message(1)).replay_from, 0U);  // late, or another life's
  stream.replayed(message(0));
  EXPECT_EQ(applied(stream.replayed(message(2))), Sequences{1}) << "it came live";
  EXPECT_FALSE(stream.replaying());
}

TEST(EventStream, StopsRequestingFromAnotherEnginesReplaySocket) {
  auto stream = live_after(2);
  std::uint64_t asked = 0;
  auto step = stream.live(message(2, 9));
  for (; step.replay_from && asked < 100; ++asked) {
    stream.replayed(message(0));
    stream.replayed(message(1));
    stream.replayed(message(2));
    step = stream.replay_ended(false);
  }
  EXPECT_LT(asked, 10U);
  EXPECT_EQ(applied(step), Sequences{2});
}

TEST(EventStream, WhatIsLostWhileAReplayRunsIsAskedForAgain) {
  auto stream = live_after(2);
  stream.live(message(4));
  stream.replayed(message(2));
  stream.replayed(message(3));
  stream.live(message(6));  // 5 was lost after the replay was taken
  const auto met = stream.replayed(message(4));
  EXPECT_FALSE(met.drop);
  EXPECT_EQ(met.replay_from, 4U);
}

TEST(EventStream, RelearnByReplayDropsTheStateAndRequestsAll) {
  auto stream = live_after(4);
  const auto step = stream.relearn(true);
  EXPECT_TRUE(step.drop);
  EXPECT_EQ(step.replay_from, 0U);
  EXPECT_TRUE(stream.replaying());
  EXPECT_EQ(applied(stream.replayed(message(2))), Sequences{2});
  EXPECT_EQ(stream.statistics().relearns, 1U);
}

TEST(EventStream, RelearnWithoutReplayContinuesWithTheNextMessage) {
  auto stream = live_after(4);
  const auto step = stream.relearn(false);
  EXPECT_TRUE(step.drop);
  EXPECT_FALSE(step.replay_from.has_value());
  EXPECT_FALSE(stream.replaying());
  const auto next = stream.live(message(5));
  EXPECT_EQ(applied(next), Sequences{5});
  EXPECT_FALSE(next.replay_from.has_value());
  EXPECT_EQ(stream.live(message(8)).replay_from, 5U) << "later gaps are filled as ever";
}

TEST(EventStream, RelearnWithoutReplayEndsARunningReplay) {
  auto stream = live_after(4);
  stream.live(message(7));
  stream.live(message(8));
  const auto step = stream.relearn(false);
  EXPECT_TRUE(step.drop);
  EXPECT_EQ(applied(step), (Sequences{7, 8}));
  EXPECT_FALSE(stream.replaying());
}

TEST(EventStream, ShortReplayCountsIfLiveMessagesContinueIt) {
  auto stream = with_replay();
  stream.start();
  stream.replayed(message(0));
  stream.replayed(message(1));
  stream.live(message(2));
  const auto end = stream.replay_ended(true);
  EXPECT_FALSE(end.drop);
  EXPECT_EQ(applied(end), Sequences{2});
}

TEST(EventStream, AGapIsFilledFromTheLastMessageOn) {
  auto stream = live_after(4);
  const auto gap = stream.live(message(7));
  EXPECT_EQ(gap.replay_from, 4U);
  EXPECT_FALSE(gap.drop);
  EXPECT_TRUE(gap.apply.empty());
  EXPECT_TRUE(stream.replayed(message(4)).apply.empty());  // the proof, not applied twice
  EXPECT_EQ(applied(stream.replayed(message(5))), Sequences{5});
  EXPECT_EQ(applied(stream.replayed(message(6))), Sequences{6});
  EXPECT_EQ(applied(stream.replay_ended(false)), Sequences{7});
  EXPECT_EQ(stream.statistics().gaps, 1U);
  EXPECT_EQ(stream.statistics().gaps_recovered, 1U);
  EXPECT_EQ(stream.statistics().drops, 0U);
}

TEST(EventStream, AGapThatReplayDoesNotCoverDropsTheState) {
  auto stream = live_after(4);
  stream.live(message(9));
  EXPECT_TRUE(stream.replayed(message(4)).apply.empty());
  const auto end = stream.replay_ended(false);  // 5 … 8 did not come
  EXPECT_TRUE(end.drop);
  EXPECT_EQ(applied(end), Sequences{9});
  EXPECT_EQ(stream.statistics().gaps_recovered, 0U);
}

TEST(EventStream, AGapWithoutAnAnswerDropsTheState) {
  auto stream = live_after(4);
  stream.live(message(6));
  const auto end = stay_silent(stream);
  EXPECT_TRUE(end.drop);
  EXPECT_EQ(applied(end), Sequences{6});
  EXPECT_EQ(stream.last_sequence(), 6U);
}

TEST(EventStream, APublisherThatRestartedAndCountedPastUsIsRecognised) {
  auto stream = live_after(4);
  EXPECT_EQ(stream.live(message(8, 1)).replay_from, 4U);
  const auto proof = stream.replayed(message(4, 1));  // same number, other bytes
  EXPECT_TRUE(proof.drop);
  EXPECT_EQ(proof.replay_from, 0U);
  Sequences all;
  for (std::uint64_t i = 0; i < 8; ++i) {
    const auto step = stream.replayed(message(i, 1));
    EXPECT_FALSE(step.drop);
    for (const auto sequence : applied(step)) all.push_back(sequence);
  }
  EXPECT_EQ(applied(stream.replay_ended(false)), Sequences{8});
  EXPECT_EQ(all, (Sequences{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(stream.statistics().drops, 1U);
}

TEST(EventStream, UnknownLastMessageMeansANewLife) {
  auto stream = live_after(4);
  stream.live(message(9));
  const auto end = stream.replay_ended(false);  // the terminator alone
  EXPECT_TRUE(end.drop);
  EXPECT_EQ(end.replay_from, 0U);
  stream.replayed(message(8));
  EXPECT_EQ(applied(stream.replay_ended(false)), Sequences{9});
}

TEST(EventStream, ANumberThatGoesBackIsARestart) {
  for (const auto replay : {false, true}) {
    auto stream = replay ? with_replay() : without_replay();
    stream.start();
    stream.replay_ended(false);
    stream.live(message(0));
    stream.live(message(1));
    const auto step = stream.live(message(0, 1));
    EXPECT_TRUE(step.drop);
    EXPECT_EQ(applied(step), Sequences{0});
    EXPECT_FALSE(step.replay_from.has_value());
    EXPECT_EQ(stream.statistics().restarts, 1U);
  }
}

TEST(EventStream, ARestartWhoseFirstMessagesWereMissedIsReplayed) {
  auto stream = live_after(6);
  const auto step = stream.live(message(2, 1));
  EXPECT_TRUE(step.drop);
  EXPECT_EQ(step.replay_from, 0U);
  stream.replayed(message(0, 1));
  stream.replayed(message(1, 1));
  EXPECT_EQ(applied(stream.replay_ended(false)), Sequences{2});
}

TEST(EventStream, ARepeatedMessageIsADuplicateNotARestart) {
  auto stream = live_after(6);
  const auto step = stream.live(message(3));
  EXPECT_FALSE(step.drop);
  EXPECT_TRUE(step.apply.empty());
  EXPECT_EQ(stream.statistics().duplicates, 1U);
}

TEST(EventStream, ARestartWithinTheBufferDropsWhatCameBeforeIt) {
  auto stream = with_replay();
  stream.start();
  for (std::uint64_t i = 0; i < 3; ++i) stream.live(message(i));
  stream.live(message(0, 1));
  stream.live(message(1, 1));
  const auto step = stream.replay_ended(false);
  EXPECT_TRUE(step.drop);
  EXPECT_EQ(applied(step), (Sequences{0, 1}));
  EXPECT_EQ(step.apply[0].payload[0], 1);
}

TEST(EventStream, AnswersWithoutARequestAreIgnored) {
  auto stream = live_after(1);
  EXPECT_TRUE(stream.replayed(message(2)).apply.empty());
  EXPECT_TRUE(stream.replay_ended(false).apply.empty());
  EXPECT_EQ(stream.last_sequence(), 1U);
}

TEST(LiveFrames, AreTopicSequenceAndPayload) {
  const Bytes topic = {'t'};
  const Bytes sequence = {0, 0, 0, 0, 0, 0, 1, 2};
  const Bytes payload = {9};
  const auto parsed = parse_live(std::vector<ByteView>{topic, sequence, payload});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->sequence, 258U);
  EXPECT_EQ(parsed->payload, payload);
}

TEST(LiveFrames, OfAnyOtherShapeAreRefused) {
  const Bytes topic = {'t'};
  const Bytes sequence(8, 0);
  const Bytes end(8, 0xff);
  const Bytes narrow(7, 0);
  for (const auto& frames : std::vector<std::vector<ByteView>>{{},
                                                               {sequence},
                                                               {topic, sequence},
                                                               {topic, narrow, topic},
                                                               {topic, end, topic},
                                                               {topic, sequence, topic, topic}}) {
    const auto parsed = parse_live(frames);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().code, ErrorCode::Corrupt);
  }
}

TEST(ReplayFrames, OfAnyOtherShapeAreRefused) {
  const Bytes none;
  const Bytes topic = {'t'};
  const Bytes sequence(8, 0);
  for (const auto& frames :
       std::vector<std::vector<ByteView>>{{},
                                          {none, sequence},
                                          {topic, sequence, none},
                                          {none, topic, none},
                                          {none, topic, sequence, none, none}}) {
    EXPECT_FALSE(parse_replay(frames).ok());
  }
}

TEST(ReplayFrames, OldAndNewFormsMeanTheSame) {
  const Bytes none;
  const Bytes topic = {'t'};
  const auto number = replay_start(7);
  const Bytes sequence(number.begin(), number.end());
  const Bytes end(8, 0xff);
  const Bytes payload = {9};
  for (const auto& frames : std::vector<std::vector<ByteView>>{
           {sequence, payload}, {none, sequence, payload}, {none, topic, sequence, payload}}) {
    const auto parsed = parse_replay(frames);
    ASSERT_TRUE(parsed.ok() && parsed->has_value());
    EXPECT_EQ((*parsed)->sequence, 7U);
    EXPECT_EQ((*parsed)->payload, payload);
  }
  for (const auto& frames : std::vector<std::vector<ByteView>>{
           {end, none}, {none, end, none}, {none, none, end, none}}) {
    const auto parsed = parse_replay(frames);
    ASSERT_TRUE(parsed.ok());
    EXPECT_FALSE(parsed->has_value());
  }
}

// The frames of one recorded answer.
std::vector<Bytes> frames_of(const json::Value& answer) {
  std::vector<Bytes> frames;
  for (const auto frame : answer) frames.push_back(from_hex(*frame.string()).value());
  return frames;
}

TEST(ReplayFrames, RecordedAnswersAreTheLiveMessagesAgain) {
  const auto session = test::load_capture("qwen2vl-main");
  const auto text = test::read_capture_file("qwen2vl-main", "replay.json");
  const auto document = json::Document::parse(text);
  ASSERT_TRUE(document.ok());
  const auto request = document->root().find("from_last_minus_2").value();
  const auto start = frames_of(request.find("request_frames_hex").value()).at(1);
  auto want = load_be64(start.data());
  EXPECT_EQ(Bytes(start), [&] {
    const auto bytes = replay_start(want);
    return Bytes(bytes.begin(), bytes.end());
  }());
  bool ended = false;
  const auto answers = request.find("answers_frames_hex").value();
  for (const auto answer : answers) {
    const auto frames = frames_of(answer);
    const auto parsed = parse_replay(std::vector<ByteView>(frames.begin(), frames.end()));
    ASSERT_TRUE(parsed.ok());
    ended = !parsed->has_value();
    if (ended) continue;
    const auto& replayed = **parsed;
    EXPECT_EQ(replayed.sequence, want++);
    const auto live = std::find_if(
        session.messages.begin(), session.messages.end(),
        [&](const auto& candidate) { return candidate.sequence == replayed.sequence; });
    ASSERT_NE(live, session.messages.end());
    EXPECT_EQ(replayed.payload, live->frames[2]);
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(want, 259U);
}

TEST(EventStream, AReconnectShowsARestartThatNumbersCannotShow) {
  auto stream = live_after(4);
  EXPECT_EQ(stream.reconnected(true).replay_from, 4U);
  EXPECT_TRUE(stream.live(message(5, 1)).apply.empty());
  const auto proof = stream.replayed(message(4, 1));
  EXPECT_TRUE(proof.drop);
  EXPECT_EQ(proof.replay_from, 0U);
  for (std::uint64_t i = 0; i < 5; ++i) stream.replayed(message(i, 1));
  EXPECT_EQ(applied(stream.replay_ended(false)), Sequences{5});
}

TEST(EventStream, AReconnectToTheSamePublisherBringsWhatWasLost) {
  auto stream = live_after(4);
  stream.reconnected(true);
  EXPECT_TRUE(stream.replayed(message(4)).apply.empty());
  EXPECT_EQ(applied(stream.replayed(message(5))), Sequences{5});
  EXPECT_TRUE(stream.replay_ended(false).apply.empty());
  EXPECT_EQ(stream.statistics().drops, 0U);
  EXPECT_EQ(stream.statistics().gaps_recovered, 0U);
}

TEST(EventStream, UnconfirmedReconnectDropsTheState) {
  auto stream = live_after(4);
  stream.reconnected(true);
  EXPECT_TRUE(stay_silent(stream).drop);
  EXPECT_TRUE(stream.replay_silent());
}

TEST(EventStream, AReconnectBeforeAnyMessageAsksForTheBeginning) {
  auto stream = with_replay();
  stream.start();
  stay_silent(stream);
  EXPECT_EQ(stream.reconnected(true).replay_from, 0U);
}

// A publisher that restarts, and a network that loses messages. What the stream has applied since
// its last drop is a run of one life without gaps, and includes the newest message.
TEST(EventStream, NeverMixesLivesAndNeverSkipsOverRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    auto stream = with_replay();
    std::vector<EventMessage> run;  // applied since the last drop
    std::uint8_t life = 0;
    std::uint64_t next = 0;
    const auto take = [&](const StreamStep& step) {
      if (step.drop) run.clear();
      run.insert(run.end(), step.apply.begin(), step.apply.end());
      return step.replay_from;
    };
    // The replay socket: remembers the last 20 messages, answers three times out of four.
    const auto serve = [&](std::optional<std::uint64_t> from) {
      while (from) {
        const bool answers = rng.below(4) != 0;
        const auto oldest = next > 20 ? next - 20 : 0;
        std::optional<std::uint64_t> again;
        for (auto i = std::max(*from, oldest); answers && i < next && !again; ++i) {
          again = take(stream.replayed(message(i, life)));
        }
        from = again ? again : take(stream.replay_ended(!answers));
      }
    };
    serve(take(stream.start()));
    for (int step = 0; step < 300; ++step) {
      if (rng.below(40) == 0) {
        ++life;
        next = 0;
        serve(take(stream.reconnected(true)));
      }
      const auto sent = message(next++, life);
      if (rng.below(6) == 0) continue;  // lost
      serve(take(stream.live(sent)));
      ASSERT_FALSE(run.empty());
      ASSERT_EQ(run.back().sequence, sent.sequence);
      for (std::size_t i = 0; i < run.size(); ++i) {
        ASSERT_EQ(run[i].payload[0], life);
        ASSERT_EQ(run[i].sequence, run[0].sequence + i);
      }
    }
  }
}

}  // namespace
}  // namespace sightline::events
