// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/faults/event_faults.h"

#include <gtest/gtest.h>

namespace sightline::faults {
namespace {

using std::chrono::milliseconds;

// Publishes the events of one engine, messages 0, 1, … with their number as payload.
class Line {
 public:
  explicit Line(std::string_view fault = {}) {
    if (fault.empty()) return;
    EXPECT_TRUE(plan_.add(*parse_fault(fault)).ok());
  }
  // Returns true if the message is kept for replay.
  bool publish(std::uint8_t number) {
    EventMessage message{.sequence = number,
                         .payload = std::make_shared<const Bytes>(Bytes{number})};
    return faults_.deliver(message, [this](const EventMessage& sent) {
      order_.push_back(sent.sequence);
      payloads_.push_back(*sent.payload);
    });
  }
  void publish_first(std::uint8_t count) {
    for (std::uint8_t i = 0; i < count; ++i) EXPECT_TRUE(publish(i));
  }
  void run_for(milliseconds time) { context_.run_for(time); }
  [[nodiscard]] const std::vector<std::uint64_t>& order() const { return order_; }
  [[nodiscard]] const std::vector<Bytes>& payloads() const { return payloads_; }
  EventFaults& faults() { return faults_; }
  FaultPlan& plan() { return plan_; }

 private:
  asio::io_context context_;
  FaultPlan plan_{7, system_clock()};
  EventFaults faults_{context_, plan_, system_clock()};
  std::vector<std::uint64_t> order_;
  std::vector<Bytes> payloads_;
};

using Order = std::vector<std::uint64_t>;

TEST(EventFaults, SendsAllMessagesInOrderWithoutFaults) {
  Line line;
  line.publish_first(4);
  EXPECT_EQ(line.order(), (Order{0, 1, 2, 3}));
  EXPECT_EQ(line.faults().delivered(), 3U);
}

TEST(EventFaults, KeepsDroppedMessagesForReplayUnlessLost) {
  Line dropping("kind=drop,count=1");
  EXPECT_TRUE(dropping.publish(0));
  EXPECT_TRUE(dropping.publish(1));
  EXPECT_EQ(dropping.order(), Order{1});
  Line losing("kind=drop,count=1,lost=true");
  EXPECT_FALSE(losing.publish(0));
  EXPECT_TRUE(losing.publish(1));
  EXPECT_EQ(losing.order(), Order{1});
}

TEST(EventFaults, DuplicateFaultSendsMessageTwice) {
  Line line("kind=duplicate,count=1");
  line.publish_first(2);
  EXPECT_EQ(line.order(), (Order{0, 0, 1}));
}

TEST(EventFaults, ReorderFaultSendsMessageAfterTheNext) {
  Line line("kind=reorder,count=1");
  line.publish_first(3);
  EXPECT_EQ(line.order(), (Order{1, 0, 2}));
  EXPECT_EQ(line.faults().delivered(), 2U);
}

TEST(EventFaults, FlushSendsTheHeldMessage) {
  Line line("kind=reorder,count=1");
  line.publish_first(1);
  EXPECT_EQ(line.order(), Order{});
  EXPECT_EQ(line.faults().delivered(), std::nullopt);
  line.faults().flush();
  EXPECT_EQ(line.order(), Order{0});
}

TEST(EventFaults, DelayHoldsBackLaterMessagesToo) {
  Line line("kind=delay,count=1,ms=20");
  line.publish_first(2);
  EXPECT_EQ(line.order(), Order{});
  line.run_for(milliseconds(200));
  EXPECT_EQ(line.order(), (Order{0, 1}));
  EXPECT_TRUE(line.publish(2));
  EXPECT_EQ(line.order(), (Order{0, 1, 2}));
}

TEST(EventFaults, RestartLosesHeldMessages) {
  Line line("kind=delay,count=1,ms=20");
  line.publish_first(2);
  line.faults().forget();
  line.run_for(milliseconds(100));
  EXPECT_EQ(line.order(), Order{});
  line.publish_first(1);
  EXPECT_EQ(line.order(), Order{0});
}

TEST(EventFaults, GarbageFaultReplacesThePayload) {
  Line line("kind=garbage,count=1");
  line.publish_first(2);
  EXPECT_EQ(line.order(), (Order{0, 1}));
  EXPECT_EQ(line.payloads()[0], Bytes(16, 0xc1));
  EXPECT_EQ(line.payloads()[1], Bytes{1});
}

TEST(EventFaults, EqualSeedsStrikeTheSameMessages) {
  Line a("kind=drop,p=0.3");
  Line b("kind=drop,p=0.3");
  a.publish_first(200);
  b.publish_first(200);
  EXPECT_EQ(a.order(), b.order());
  EXPECT_GT(a.order().size(), 110U);
  EXPECT_LT(a.order().size(), 170U);
  EXPECT_EQ(a.plan().struck("drop"), 200 - a.order().size());
}

TEST(EventFaults, SmallerBlocksKeepTokensAndLastHash) {
  core::BlockStored event;
  event.hashes.resize(2);
  event.hashes[0].back() = 10;
  event.hashes[1].back() = 20;
  event.block_size = 4;
  event.tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  event.extra_keys.resize(2);
  event.extra_keys[0].cache_salt = "s";
  event.extra_keys[1].media = {{"cat", -3}, {"dog", 3}};
  tell_smaller_blocks(event);
  EXPECT_EQ(event.block_size, 2U);
  ASSERT_EQ(event.hashes.size(), 4U);
  EXPECT_EQ(event.hashes[0].back(), 11);
  EXPECT_EQ(event.hashes[1].back(), 10);
  EXPECT_EQ(event.hashes[3].back(), 20);
  EXPECT_EQ(event.tokens.size(), 8U);
  ASSERT_EQ(event.extra_keys.size(), 4U);
  EXPECT_EQ(event.extra_keys[0].cache_salt, "s");
  EXPECT_EQ(event.extra_keys[1].cache_salt, std::nullopt);
  EXPECT_EQ(event.extra_keys[2].media, (std::vector<core::MediaKey>{{"cat", -3}}));
  EXPECT_EQ(event.extra_keys[3].media, (std::vector<core::MediaKey>{{"cat", -5}, {"dog", 1}}));
}

core::BlockStored store_of(std::uint8_t last_byte) {
  core::BlockStored event;
  event.hashes.resize(1);
  event.hashes[0].back() = last_byte;
  event.block_size = 4;
  event.tokens = {1, 2, 3, 4};
  event.extra_keys.resize(1);
  return event;
}

// Evicts one copy of a block. Returns the last bytes of the hashes that the engine then removes.
std::vector<int> withdrawn(EventFaults& faults, std::uint8_t last_byte) {
  core::BlockRemoved event;
  event.hash.back() = last_byte;
  std::vector<core::KvEvent> events{event};
  faults.distort(9, events);
  std::vector<int> hashes;
  for (const auto& told : events) {
    hashes.push_back(std::get<core::BlockRemoved>(told).hash.back());
  }
  return hashes;
}

TEST(EventFaults, SmallerBlocksAreAllRemovedAgain) {
  Line line;
  std::vector<core::KvEvent> before{store_of(50)};
  line.faults().distort(0, before);
  EXPECT_TRUE(line.plan().add(*parse_fault("kind=wrong-block-size,count=1")).ok());
  std::vector<core::KvEvent> events{store_of(10), store_of(10), store_of(20)};
  line.faults().distort(1, events);
  EXPECT_EQ(withdrawn(line.faults(), 10), (std::vector{11, 10}));
  EXPECT_EQ(withdrawn(line.faults(), 10), (std::vector{11, 10}));
  EXPECT_EQ(withdrawn(line.faults(), 10), std::vector{10}) << "there were two copies";
  EXPECT_EQ(withdrawn(line.faults(), 50), std::vector{50}) << "announced as one block";
  std::vector<core::KvEvent> cleared{core::AllBlocksCleared{}};
  line.faults().distort(2, cleared);
  EXPECT_EQ(withdrawn(line.faults(), 20), std::vector{20});
  std::vector<core::KvEvent> last{store_of(30)};
  line.faults().distort(3, last);
  line.faults().forget();
  EXPECT_TRUE(line.plan().add(*parse_fault("kind=wrong-block-size,count=1")).ok());
  EXPECT_EQ(withdrawn(line.faults(), 30), std::vector{30}) << "of the life before the restart";
}

TEST(FaultPlan, ListsStrikesFromASequenceNumber) {
  Line line("kind=drop,count=2");
  line.publish_first(3);
  const std::string all = line.plan().to_json(0);
  EXPECT_NE(all.find(R"("strikes_total":2)"), std::string::npos);
  EXPECT_NE(all.find(R"("sequence":0})"), std::string::npos);
  EXPECT_NE(all.find(R"("sequence":1})"), std::string::npos);
  EXPECT_NE(all.find(R"("struck":2})"), std::string::npos);
  EXPECT_EQ(line.plan().to_json(1).find(R"("sequence":0})"), std::string::npos);
  EXPECT_NE(line.plan().to_json(2).find(R"("strikes":[])"), std::string::npos);
}

}  // namespace
}  // namespace sightline::faults
