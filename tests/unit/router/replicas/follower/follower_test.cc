// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/follower/follower.h"

#include <gtest/gtest.h>

#include "tests/unit/router/replicas/follower/fixture.h"

namespace sightline::follower {
namespace {

TEST_F(FrameFollowerTest, AnEpochIsBegunByADumpOnceItsAgentAnswered) {
  make();
  EXPECT_EQ(reason(), "its agent has not answered");
  settle();
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(follower->status().position, 1U);
  EXPECT_EQ(held.name, (operations::CacheName{"w0", 1, 1'000'000}));
  EXPECT_EQ(count<frames::DumpAsk>(), 1U);
  EXPECT_EQ(count<frames::RangeAsk>(), 0U);
}

TEST_F(FrameFollowerTest, AnEmptyDumpHasNoChunksAndIsAsGood) {
  agent = PlainAgent("a", 10, 5);
  make();
  settle();
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(follower->status().position, 0U);
  EXPECT_EQ(count<frames::ChunkAsk>(), 0U);
}

TEST_F(FrameFollowerTest, FramesAreAppliedInTheirOrderAndOnce) {
  make();
  settle();
  const auto frame = agent.publish({store({4}), removal(1)}, true);
  follower->hear(frame, now);
  follower->hear(frame, now);
  EXPECT_TRUE(is_verified());
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(dropped(Drop::Repeated), 1U);
  EXPECT_EQ(follower->statistics().frames, 1U);
}

TEST_F(FrameFollowerTest, AnAnswerToNoOpenQuestionProvesNothing) {
  make();
  is_lost = [](const Body&) { return true; };
  wait(seconds(10));
  const auto first = std::get<frames::StreamQuestion>(asked.front());
  follower->hear(agent.hear(Body{first}).front(), now);
  follower->hear(agent.hear(Body{frames::StreamQuestion{.nonce = 99, .reader = "r0"}}).front(),
                 now);
  EXPECT_EQ(dropped(Drop::StaleAnswer), 2U);
  EXPECT_FALSE(follower->status().epoch);
}

TEST_F(FrameFollowerTest, DropsForeignFramesAndAsksAboutThem) {
  make();
  settle();
  auto frame = agent.publish({store({9})}, false);
  frame.epoch = 4;
  follower->hear(frame, now);
  frame.instance = 4;
  follower->hear(frame, now);
  EXPECT_EQ(dropped(Drop::OtherEpoch), 1U);
  EXPECT_EQ(dropped(Drop::OtherAgent), 1U);
  EXPECT_FALSE(held.of(operations::Tier::Gpu).contains(9));
  const auto questions = count<frames::StreamQuestion>();
  wait(milliseconds(500));
  EXPECT_EQ(count<frames::StreamQuestion>(), questions + 1);
}

TEST_F(FrameFollowerTest, AGapIsFilledByARange) {
  make();
  settle();
  agent.publish({removal(1)}, false);
  agent.publish({removal(2)}, false);
  follower->hear(agent.publish({store({4})}, true), now);
  EXPECT_EQ(reason(), "messages of its agent are missing");
  settle();
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(count<frames::RangeAsk>(), 1U);
  EXPECT_EQ(count<frames::DumpAsk>(), 1U);
}

TEST_F(FrameFollowerTest, ALossAtTheEndIsSeenByAQuestion) {
  make();
  settle();
  agent.publish({removal(1)}, false);
  follower->messages_lost(now);
  wait(milliseconds(700));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
}

TEST_F(FrameFollowerTest, UnfillableGapIsFilledByADump) {
  make();
  settle();
  agent.ring_max = 1;
  agent.publish({removal(1)}, false);
  follower->hear(agent.publish({store({4})}, true), now);
  wait(seconds(2));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(follower->statistics().dumps, 2U);
}

TEST_F(FrameFollowerTest, FillsALongGapRangeByRange) {
  FollowerOptions options;
  options.range_frames_max = 2;
  make(options);
  settle();
  for (std::uint64_t i = 0; i < 8; ++i) agent.publish({store({100 + i})}, false);
  follower->hear(agent.publish({}, true), now);
  settle();
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(count<frames::RangeAsk>(), 4U);
  EXPECT_EQ(follower->statistics().gaps, 1U);
}

TEST_F(FrameFollowerTest, DropsARefusalOfAnotherRange) {
  make();
  settle();
  agent.publish({removal(1)}, false);
  follower->hear(agent.publish({}, true), now);
  follower->hear(frames::NotAvailable{frames::NotAvailable::MissingPart::Range, agent.epoch()},
                 now);
  EXPECT_EQ(dropped(Drop::OtherDump), 1U);
  settle();
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(follower->statistics().dumps, 1U);
}

TEST_F(FrameFollowerTest, FramesWaitForADumpWithinTheirLimit) {
  FollowerOptions options;
  options.waiting_bytes_max = 4'000;
  make(options);
  is_lost = [](const Body& answer) { return std::holds_alternative<frames::DumpChunk>(answer); };
  settle();
  for (std::uint64_t i = 0; i < 100; ++i) {
    follower->hear(agent.publish({store({100 + i})}, false), now);
    EXPECT_LE(follower->status().waiting_bytes, 4'000U);
  }
  EXPECT_GT(dropped(Drop::NoRoom), 50U);
  EXPECT_TRUE(held.of(operations::Tier::Gpu).empty());
  is_lost = nullptr;
  wait(seconds(3));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(follower->statistics().dumps, 1U);
}

TEST_F(FrameFollowerTest, ChunksAreAskedForInAWindowAndLostOnesSingly) {
  for (std::uint64_t i = 0; i < 100; ++i) agent.publish({store({100 + i})}, false);
  make();
  int lost = 0;
  is_lost = [&](const Body& answer) {
    const auto* chunk = std::get_if<frames::DumpChunk>(&answer);
    return chunk != nullptr && chunk->chunk == 5 && lost++ < 2;
  };
  wait(seconds(4));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(follower->statistics().chunks_asked_again, 2U);
  for (const Body& ask : asked) {
    if (const auto* chunks = std::get_if<frames::ChunkAsk>(&ask)) {
      EXPECT_LE(chunks->chunks.size(), 8U);
    }
  }
}

TEST_F(FrameFollowerTest, RequestsAMissingOrWrongDumpAgainWithPauses) {
  make();
  is_lost = [&](const Body& answer) {
    if (std::holds_alternative<frames::Offer>(answer)) agent.forget_dumps();
    return false;
  };
  wait(seconds(20), true);
  EXPECT_FALSE(is_verified());
  EXPECT_GE(count<frames::DumpAsk>(), 3U);
  EXPECT_LE(count<frames::DumpAsk>(), 6U);
  is_lost = nullptr;
  wait(seconds(30), true);
  EXPECT_TRUE(is_verified()) << reason();
}

TEST_F(FrameFollowerTest, RejectsADumpOfWrongContent) {
  make();
  is_lost = [&](const Body& answer) {
    auto* offer = const_cast<frames::Offer*>(std::get_if<frames::Offer>(&answer));
    if (offer != nullptr) ++offer->checksum;
    return false;
  };
  settle();
  EXPECT_FALSE(is_verified());
  EXPECT_EQ(follower->statistics().dumps_failed, 1U);
  EXPECT_FALSE(follower->status().position);
}

TEST_F(FrameFollowerTest, ADigestThatDiffersAtItsPositionLeadsToADump) {
  make();
  settle();
  held.apply(store({77}));
  follower->hear(agent.publish({}, true), now);
  EXPECT_FALSE(is_verified());
  EXPECT_EQ(follower->statistics().digests_unequal, 1U);
  wait(seconds(2));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
}

TEST_F(FrameFollowerTest, AnIndexThatRefusedBlocksIsCappedAndNotDiverged) {
  make({}, 2);
  settle();
  follower->hear(agent.publish({}, true), now);
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(follower->facts().missing.no_room);
  EXPECT_EQ(follower->statistics().digests_unequal, 0U);
  EXPECT_EQ(follower->statistics().digests_capped, 2U);
}

TEST_F(FrameFollowerTest, EndsAnEndlessDumpAtItsFirstExtraBlock) {
  make();
  is_lost = [&](const Body& answer) {
    if (auto* offer = const_cast<frames::Offer*>(std::get_if<frames::Offer>(&answer))) {
      offer->digest.of(operations::Tier::Gpu).count = 2;  // of the three that come
    }
    return false;
  };
  wait(seconds(10), true);
  EXPECT_TRUE(held.of(operations::Tier::Gpu).empty());
  EXPECT_EQ(reason(), "its agent's snapshot has more blocks than announced: refused");
  EXPECT_EQ(dropped(Drop::TooMuch), count<frames::ChunkAsk>()) << "one chunk a dump";
  EXPECT_LE(count<frames::DumpAsk>(), 5U);
  is_lost = [&](const Body& answer) {
    if (auto* offer = const_cast<frames::Offer*>(std::get_if<frames::Offer>(&answer))) {
      offer->chunks = 4;
    }
    return false;
  };
  const std::size_t asked_before = count<frames::ChunkAsk>();
  wait(seconds(40), true);
  EXPECT_EQ(count<frames::ChunkAsk>(), asked_before) << "three blocks are at most three chunks";
  is_lost = nullptr;
  wait(seconds(60), true);
  EXPECT_TRUE(is_verified()) << reason();
}

TEST_F(FrameFollowerTest, RefusesADumpAboveTheEnginesCapacity) {
  make();
  held.room = 2;
  wait(seconds(5), true);
  EXPECT_EQ(count<frames::ChunkAsk>(), 0U);
  EXPECT_EQ(reason(), "its agent's snapshot has more blocks than its engine (gpu_blocks): refused");
  held.room = 3;
  wait(seconds(60), true);
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
}

TEST_F(FrameFollowerTest, RequestsADumpForRefusedBlocks) {
  make({}, 2);
  settle();
  EXPECT_EQ(held.refused(), 1U);
  held.make_room();
  follower->ask_again(now);
  EXPECT_FALSE(is_verified()) << "until the dump is there";
  follower->ask_again(now);
  wait(seconds(2));  // a dump was asked for just now
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_FALSE(follower->facts().missing.no_room);
  EXPECT_EQ(count<frames::DumpAsk>(), 2U);
}

TEST_F(FrameFollowerTest, TwoAgentsAreNamedUntilOneIsSilent) {
  make();
  settle();
  agents.push_back(&other);
  follower->hear(other.publish({store({50})}, true), now);
  wait(seconds(5), true);
  EXPECT_EQ(reason(), "two agents serve it: a and b");
  EXPECT_TRUE(is_equal());
  agents.erase(agents.begin());
  wait(seconds(2), true);
  EXPECT_FALSE(is_verified());
  wait(seconds(4), true);
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(follower->status().agent->name, "b");
  EXPECT_EQ(held.blocks, other.cache.blocks);
}

TEST_F(FrameFollowerTest, LeavesAnEndingAgentForGood) {
  make();
  settle();
  is_lost = [](const Body&) { return true; };
  follower->look(now);
  wait(seconds(1));
  follower->hear(frames::Bye{agent.instance.number}, now);
  EXPECT_FALSE(is_verified());
  follower->hear(agent.hear(asked.back()).front(), now);
  EXPECT_EQ(dropped(Drop::EndedAgent), 1U);
  is_lost = nullptr;
  agents = {&other};
  wait(seconds(1));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(follower->status().agent->name, "b");
}

TEST_F(FrameFollowerTest, EngineUnreadByItsAgentIsUnverifiedImmediately) {
  make();
  settle();
  agent.hearing = false;
  follower->hear(agent.publish({}, true), now);
  EXPECT_EQ(reason(), "it does not hear its engine");
  agent.hearing = true;
  follower->hear(agent.publish({}, true), now);
  EXPECT_TRUE(is_verified()) << reason();
}

TEST_F(FrameFollowerTest, ASilentAgentIsUnverifiedAfterAWhileAndForgottenLater) {
  make();
  settle();
  agents.clear();
  wait(milliseconds(4'800));
  EXPECT_TRUE(is_verified()) << reason();
  wait(milliseconds(200));
  EXPECT_EQ(reason(),
            "its agent a has been dead since 1970-01-01 00:16:40 UTC: it does not answer, although "
            "NATS works");
  EXPECT_EQ(follower->status().dead_since, Instant{} + seconds(1'000));
  wait(milliseconds(54'800));
  EXPECT_TRUE(is_equal());
  wait(milliseconds(200));
  EXPECT_TRUE(held.of(operations::Tier::Gpu).empty());
  EXPECT_EQ(follower->statistics().forgotten, 1U);
  EXPECT_EQ(follower->status().position, std::nullopt);
  agents = {&agent};
  wait(seconds(5));
  EXPECT_TRUE(is_equal());
}

TEST_F(FrameFollowerTest, AfterSilenceAnEqualDigestIsAwaited) {
  make();
  settle();
  agents.clear();
  wait(seconds(10));
  const auto frame = agent.publish({store({4})}, true);
  auto without = frame;
  without.beat.reset();
  follower->hear(without, now);
  EXPECT_FALSE(is_verified());
  follower->hear(agent.publish({}, true), now);
  settle();
  EXPECT_FALSE(is_verified()) << "a message that nobody asked for may be of any age";
  agents = {&agent};
  wait(seconds(2));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_FALSE(follower->status().dead_since);
  EXPECT_EQ(follower->statistics().dumps, 1U);
}

TEST_F(FrameFollowerTest, PausesWithoutNatsAndSpreadsRequestsAfterwards) {
  make();
  settle();
  follower->nats_lost(now);
  const auto before = asked.size();
  agent.publish({removal(1)}, false);
  wait(seconds(6));
  EXPECT_EQ(asked.size(), before);
  EXPECT_EQ(reason(), "NATS cannot be reached: messages of its agent do not arrive");
  std::set<Duration> waits;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PlainCache none;
    FrameFollower one({{"w0", 0}, "r", seed}, none, none, now);
    one.nats_lost(now);
    one.nats_healed(now);
    EXPECT_LE(one.deadline(), now + seconds(1));
    EXPECT_TRUE(one.turn(one.deadline() - milliseconds(1)).empty());
    waits.insert(one.deadline() - now);
  }
  EXPECT_GT(*waits.rbegin() - *waits.begin(), milliseconds(500));
  follower->nats_healed(now);
  wait(seconds(4), true);
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
}

TEST_F(FrameFollowerTest, AskedAgainWithPausesThatGrow) {
  make();
  settle();
  agents.clear();
  agent.publish({}, false);
  follower->hear(agent.publish({}, true), now);
  wait(seconds(10));
  EXPECT_GE(count<frames::RangeAsk>(), 4U);
  EXPECT_LE(count<frames::RangeAsk>(), 8U);
}

TEST_F(FrameFollowerTest, CaughtUpCountsFromTheAppliedQuestion) {
  make();
  settle();
  agent.caught_up_ago = milliseconds(30);
  const auto missed = agent.publish({store({4})}, false);
  is_lost = [](const Body& answer) { return std::holds_alternative<frames::Frame>(answer); };
  wait(milliseconds(300));
  follower->look(now);
  const Instant asked_at = now;
  talk();
  EXPECT_FALSE(follower->facts().caught_up);
  wait(milliseconds(100));
  follower->hear(missed, now);
  EXPECT_EQ(follower->facts().caught_up, asked_at - milliseconds(30));
}

TEST_F(FrameFollowerTest, SendsARelearnOnceAndThenWithPauses) {
  make();
  EXPECT_FALSE(follower->relearn(now));
  settle();
  int said = 0;
  for (int second = 0; second < 3'600; ++second) {
    if (follower->relearn(now)) ++said;
    talk();
    now += seconds(1);
    follower->hear(agent.publish({}, true), now);
  }
  EXPECT_EQ(count<frames::RelearnAsk>(), static_cast<std::size_t>(said));
  EXPECT_GE(said, 12);
  EXPECT_LE(said, 20);
}

TEST_F(FrameFollowerTest, FollowsANewEpochAndClearsTheOldOne) {
  make();
  settle();
  agent.begin(3'000'000);
  agent.cache.apply(operations::Clear{});
  follower->hear(agent.publish({store({8})}, true), now);
  wait(seconds(2));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(held.name.epoch, 3'000'000U);
}

TEST_F(FrameFollowerTest, LateAnswerDoesNotRestoreAnEndedEpoch) {
  make();
  settle();
  is_lost = [](const Body&) { return true; };
  follower->look(now);
  wait(milliseconds(300));
  const Body late_answer = agent.hear(asked.back()).front();
  const Body late_offer = agent.hear(Body{frames::DumpAsk{"r0", agent.epoch()}}).front();
  agent.begin(3'000'000);
  follower->look(now);
  wait(milliseconds(300));
  follower->hear(agent.hear(asked.back()).front(), now);
  EXPECT_EQ(follower->status().epoch, 3'000'000U);
  follower->hear(late_answer, now);
  follower->hear(late_offer, now);
  EXPECT_EQ(follower->status().epoch, 3'000'000U);
  EXPECT_EQ(dropped(Drop::StaleAnswer), 1U);
  EXPECT_EQ(dropped(Drop::OtherEpoch), 1U);
  is_lost = nullptr;
  wait(seconds(3));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(follower->statistics().dumps_failed, 0U);
}

TEST_F(FrameFollowerTest, LeavesAnEpochThatTheAgentHasDropped) {
  make();
  settle();
  agent.publish({store({4})}, false);
  const auto last = agent.publish({store({5})}, false);
  agent.begin(3'000'000);
  is_lost = [](const Body& answer) { return std::holds_alternative<frames::StreamAnswer>(answer); };
  follower->hear(last, now);
  settle();
  EXPECT_FALSE(follower->status().epoch);
  EXPECT_FALSE(is_verified());
  is_lost = nullptr;
  wait(seconds(2));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_TRUE(is_equal());
}

TEST_F(FrameFollowerTest, AViewThatTheAgentItselfDoubtsIsNotProved) {
  make();
  settle();
  agent.proved = false;
  follower->look(now);
  wait(milliseconds(500));
  EXPECT_EQ(reason(), "its agent has not proved that it has all KV events");
  agent.proved = true;
  wait(seconds(4));
  EXPECT_TRUE(is_verified()) << reason();
}

TEST_F(FrameFollowerTest, WhatOnlyRoutersSayIsDropped) {
  make();
  follower->hear(frames::DumpAsk{.reader = "r1", .epoch = 1}, now);
  follower->hear(frames::DumpChunk{.dump = 1, .chunk = 0, .operations = {}}, now);
  follower->hear(frames::Offer{.dump = 1, .epoch = 1}, now);
  EXPECT_EQ(dropped(Drop::OtherReader), 1U);
  EXPECT_EQ(dropped(Drop::OtherDump), 1U);
  EXPECT_EQ(dropped(Drop::OtherEpoch), 1U);
}

}  // namespace
}  // namespace sightline::follower
