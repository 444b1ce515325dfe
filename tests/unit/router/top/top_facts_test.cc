// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/top/top_facts.h"

#include <gtest/gtest.h>

namespace sightline::top {
namespace {

constexpr const char* kMetrics =
    "# HELP sightline_requests_total x\n"
    "sightline_requests_total{route=\"chat\",code=\"200\"} 40\n"
    "sightline_requests_total{route=\"other\",code=\"503\"} 2\n"
    "sightline_requests_active 3\n"
    "sightline_overlap_blocks_total{worker=\"a\"} 30\n"
    "sightline_prompt_blocks_total{worker=\"a\"} 40\n"
    "sightline_worker_list_generation 12\n"
    "sightline_worker_list_source{source=\"file\"} 0\n"
    "sightline_worker_list_source{source=\"push\"} 1\n"
    "malformed line\n";
constexpr const char* kWorkers =
    R"([{"name":"a","state":"ready","ready":true,"reason":null,"in_flight":2,"running":3,)"
    R"("waiting":1,"blocks":500,"ranks":[{"events":{"lag_ms":7}},{"events":{"lag_ms":40}},)"
    R"({"events":null}]},{"name":"b","state":"down","ready":false,"reason":"refused","ranks":[]}])";
constexpr const char* kReplicas =
    R"({"nats":[{"connected":true},{"connected":false}],"members":[)"
    R"({"role":"router","fits":true},{"role":"agent","fits":true},{"role":"agent","fits":false}],)"
    R"("streams":[{"worker":"a","digest_equal_ms":900,"lag_by_stamp_ms":50},)"
    R"({"worker":"a","digest_equal_ms":1200,"lag_by_stamp_ms":null},{"worker":"x"}]})";

TEST(RouterFacts, AreReadFromWhatAnAdminPortAnswers) {
  const auto facts = read_facts("h:9090", {true, kWorkers, kReplicas, kMetrics});
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  EXPECT_EQ(facts->requests, 42);
  EXPECT_EQ(facts->active, 3U);
  EXPECT_EQ(facts->generation, 12U);
  EXPECT_EQ(facts->list_source, "push");
  EXPECT_EQ(facts->is_nats_connected, false) << "one of two is away";
  ASSERT_TRUE(facts->members);
  EXPECT_EQ(facts->members->routers, 1U);
  EXPECT_EQ(facts->members->agents, 1U);
  EXPECT_EQ(facts->members->unfit, 1U);
  ASSERT_EQ(facts->workers.size(), 2U);
  const WorkerFacts& a = facts->workers[0];
  EXPECT_TRUE(a.is_ready);
  EXPECT_EQ(a.in_flight + a.running + a.waiting, 6U);
  EXPECT_EQ(a.blocks, 500U);
  EXPECT_EQ(a.lag_ms, 50U);
  EXPECT_EQ(a.digest_age_ms, 1200U) << "the oldest of its ranks";
  EXPECT_EQ(facts->workers[1].reason, "refused");
  EXPECT_FALSE(facts->workers[1].digest_age_ms);
}

TEST(RouterFacts, ReadARouterWithoutReplicasAndAFrontendWithoutWorkers) {
  const auto facts = read_facts("h:9090", {false, "", "", kMetrics});
  ASSERT_TRUE(facts.ok());
  EXPECT_FALSE(facts->members || facts->is_nats_connected);
  EXPECT_TRUE(facts->workers.empty());
}

TEST(RouterFacts, ReportAnotherServerAsNoAdminPort) {
  EXPECT_FALSE(read_facts("h", {true, "", "", "<html>"}).ok());
  EXPECT_FALSE(read_facts("h", {true, "{}", "", kMetrics}).ok());
  EXPECT_FALSE(read_facts("h", {true, "[", "", kMetrics}).ok());
  EXPECT_FALSE(read_facts("h", {true, "", "[]", kMetrics}).ok());
}

TEST(RouterFacts, NothingThatSteersATerminalComesThrough) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f\xc3\xa4"), "a?[2Jb?c???");
  const auto facts = read_facts(
      "h\x1b", {true, R"([{"name":"\u001b[31m","state":"x\u0007","reason":"\n"}])", "", kMetrics});
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->address, "h?");
  EXPECT_EQ(facts->workers[0].name, "?[31m");
  EXPECT_EQ(facts->workers[0].state, "x?");
}

TEST(RouterFacts, RatesFollowFromTwoLooksAndNotFromARestart) {
  RouterFacts first;
  first.requests = 100;
  first.overlap_blocks = 50;
  first.prompt_blocks = 100;
  compare(first, nullptr, 0);
  EXPECT_FALSE(first.requests_per_s);
  EXPECT_EQ(first.hit_ratio, 0.5);
  RouterFacts second = first;
  second.requests = 120;
  second.overlap_blocks = 59;
  second.prompt_blocks = 110;
  compare(second, &first, 2);
  EXPECT_EQ(second.requests_per_s, 10.0);
  EXPECT_EQ(second.hit_ratio, 0.9) << "of the blocks since the last look";
  RouterFacts idle = second;
  compare(idle, &second, 2);
  EXPECT_EQ(idle.requests_per_s, 0.0);
  RouterFacts restarted;
  restarted.requests = 5;
  compare(restarted, &idle, 2);
  EXPECT_FALSE(restarted.requests_per_s);
}

}  // namespace
}  // namespace sightline::top
