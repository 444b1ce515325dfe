// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

class FleetTest : public FleetFixture {
 protected:
  void start(const std::string& text = "name=w,url=http://h:1") {
    spec_ = spec_of(text);
    fleet_.set_workers({spec_});
  }
  void start_ready(const std::string& text = "name=w,url=http://h:1") {
    start(text);
    fleet_.apply_probe(spec_, healthy_probe());
  }
  void start_all(const std::vector<WorkerSpec>& specs) {
    fleet_.set_workers(specs);
    for (const WorkerSpec& spec : specs) fleet_.apply_probe(spec, healthy_probe());
  }

  WorkerSpec spec_;
};

TEST_F(FleetTest, AWorkerStartsUntilItAnswers) {
  start();
  EXPECT_EQ(state(), WorkerState::Starting);
  EXPECT_FALSE(worker()->is_routable());
  fleet_.apply_probe(spec_, failed_probe(true));
  EXPECT_EQ(state(), WorkerState::Starting);
  EXPECT_EQ(worker()->reason, "has not answered yet: connection refused");
  EXPECT_TRUE(live_.empty());
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason, "");
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_TRUE(metric_has("sightline_worker_state{worker=\"w\",state=\"ready\"} 1\n"));
  EXPECT_TRUE(metric_has("sightline_worker_state{worker=\"w\",state=\"starting\"} 0\n"));
}

TEST_F(FleetTest, AnUrlAloneConfiguresItself) {
  start_ready();
  ASSERT_EQ(live_.size(), 1u);
  EXPECT_EQ(live_.begin()->second.endpoints.events, "tcp://h:5557");
  EXPECT_EQ(live_.begin()->second.endpoints.replay, "tcp://h:5657");
  EXPECT_EQ(worker()->block_size.tokens(), 16u);
  EXPECT_EQ(worker()->block_size.configured(), 16u);
  EXPECT_EQ(worker()->block_size.by_operator(), 0u) << "what it tells elsewhere is a guess";
  EXPECT_EQ(worker()->max_model_len, 4096u);
  EXPECT_EQ(worker()->running, 1u);
  EXPECT_EQ(worker()->waiting, 2u);
  EXPECT_EQ(worker()->kv_usage, 0.5);
  EXPECT_TRUE(worker()->serves("ad"));
  EXPECT_FALSE(worker()->serves("other"));
  EXPECT_EQ(fleet_.snapshot()->find(live_.begin()->first), worker());
}

TEST_F(FleetTest, WorkerIsUnverifiedWhileEventsAreNotFollowed) {
  follows_events_ = false;
  start_ready();
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_EQ(worker()->reason, "waiting for the first event connection");
  const CacheId engine = live_.begin()->first;
  tell_health(engine, FeedHealth::Replaying);
  EXPECT_EQ(worker()->reason, "replaying events");
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_FALSE(worker()->is_precise(worker()->ranks.front()));
  tell_health(engine, FeedHealth::Verified);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason, "");
  EXPECT_TRUE(worker()->is_precise(worker()->ranks.front()));
  tell_health(engine, FeedHealth::Disconnected);
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_EQ(worker()->reason, "event connection lost");
  EXPECT_TRUE(metric_has("sightline_worker_state{worker=\"w\",state=\"unverified\"} 1\n"));
}

TEST_F(FleetTest, TheHealthOfAnEngineThatIsGoneIsIgnored) {
  start_ready();
  const CacheId old = live_.begin()->first;
  fleet_.apply_probe(spec_, failed_probe(true));
  fleet_.apply_probe(spec_, healthy_probe());
  ASSERT_EQ(state(), WorkerState::Ready);
  tell_health(old, FeedHealth::Disconnected);
  EXPECT_EQ(state(), WorkerState::Ready);
}

TEST_F(FleetTest, UnusableFeedLeavesItsWorkerUnverifiedWithAReason) {
  start_ready();
  const CacheId cache = cache_of("w");
  fleet_.refuse_feed(cache, "tcp://h:5557 is no endpoint");
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_EQ(worker()->reason, "its KV events cannot be read: tcp://h:5557 is no endpoint");
  fleet_.apply_probe(spec_, failed_probe(true));
  const auto before = worker();
  fleet_.refuse_feed(cache, "too late");
  EXPECT_EQ(worker(), before);
}

TEST_F(FleetTest, FactsOfOneCacheAreTakenOverTogether) {
  follows_events_ = false;
  start();
  Probe probe = healthy_probe();
  probe.load->block_size = 0;
  fleet_.apply_probe(spec_, probe);
  const auto revision = worker()->revision;
  fleet_.take_facts(cache_of("w"), {.health = FeedHealth::Verified,
                                    .block_size = 32,
                                    .missing = {.forgotten = false},
                                    .sequence = 1});
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->block_size.tokens(), 32u);
  EXPECT_EQ(worker()->revision, revision + 1);
}

TEST_F(FleetTest, WithoutEventsItIsRoutedUnverified) {
  start();
  Probe probe = healthy_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "404", false);
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(state(), WorkerState::Unverified);
  EXPECT_NE(worker()->reason.find("add events="), std::string::npos);
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_FALSE(worker()->is_precise());
}

Probe probe_of_two_ranks() {
  Probe probe = healthy_probe();
  probe.sources->push_back({.rank = 1, .enabled = true, .endpoint = "tcp://*:5558"});
  probe.load->ranks = {{0, 1, 2, 0.5}, {1, 7, 4, 0.25}};
  return probe;
}

TEST_F(FleetTest, EachRankHasItsOwnEventsLoadAndBookings) {
  start();
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  EXPECT_EQ(state(), WorkerState::Ready);
  ASSERT_EQ(worker()->ranks.size(), 2u);
  EXPECT_TRUE(worker()->has_several_ranks());
  const Rank& second = worker()->ranks[1];
  EXPECT_EQ(second.number, 1u);
  EXPECT_EQ(second.running, 7u);
  EXPECT_EQ(second.waiting, 4u);
  EXPECT_EQ(second.kv_usage, 0.25);
  EXPECT_NE(second.load, worker()->ranks[0].load);
  ASSERT_EQ(live_.size(), 2u);
  ASSERT_TRUE(second.feed);
  EXPECT_EQ(second.feed->endpoints.events, "tcp://h:5558");
  EXPECT_NE(cache_of(1), cache_of(0));
  EXPECT_EQ(worker()->find(cache_of(1)), &worker()->ranks[1]);
  EXPECT_EQ(worker()->find(CacheId{99}), nullptr);
}

TEST_F(FleetTest, SilentRankLeavesTheOthersVerified) {
  start();
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  tell_health(cache_of(1), FeedHealth::Disconnected);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_TRUE(worker()->is_precise(worker()->ranks[0]));
  EXPECT_FALSE(worker()->is_precise(worker()->ranks[1]));
  tell_health(cache_of(0), FeedHealth::Disconnected);
  EXPECT_EQ(state(), WorkerState::Unverified);
}

TEST_F(FleetTest, ARankKeepsItsBookingsFromLookToLook) {
  start();
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  const auto before = worker();
  const BookedWork reservation = before->ranks[1].load->reserve({}, clock_.now());
  Probe silent = probe_of_two_ranks();
  silent.sources = worker_error(ErrorCode::Timeout, "no answer", true);
  silent.load = worker_error(ErrorCode::Timeout, "no answer", true);
  for (const Probe& probe : {probe_of_two_ranks(), silent, healthy_probe(), probe_of_two_ranks()}) {
    fleet_.apply_probe(spec_, probe);
    EXPECT_EQ(worker()->ranks[0].load, before->ranks[0].load);
  }
  ASSERT_EQ(worker()->ranks.size(), 2u);
  EXPECT_EQ(before->ranks[1].load->read(clock_.now()).in_flight, 1u);
}

TEST_F(FleetTest, LoadBookNamesRanksByWorkerAndNumber) {
  start();
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  LoadBook& book = fleet_.load_book();
  EXPECT_TRUE(book.set_others("peer", {"w", 1}, {.in_flight = 3}, clock_.now()));
  EXPECT_FALSE(book.set_others("peer", {"w", 2}, {.in_flight = 3}, clock_.now()));
  EXPECT_EQ(worker()->ranks[0].load->read(clock_.now()).in_flight, 0u);
  EXPECT_EQ(worker()->ranks[1].load->read(clock_.now()).in_flight, 3u);
  const BookedWork reservation = worker()->ranks[0].load->reserve({}, clock_.now());
  EXPECT_TRUE(book.set_others("peer", {"w", 0}, {.in_flight = 4}, clock_.now()));
  // Another server of the same name: requests on the earlier one are not its work.
  fleet_.set_workers({spec_of("name=w,url=http://elsewhere:1")});
  EXPECT_EQ(worker()->ranks[0].load->own(clock_.now()).in_flight, 0u);
  EXPECT_EQ(worker()->ranks[0].load->read(clock_.now()).in_flight, 4u) << "until the peer knows";
}

TEST_F(FleetTest, BrieflySilentEngineKeepsItsRanks) {
  start();
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  const auto before = worker();
  Probe silent = probe_of_two_ranks();
  silent.sources = worker_error(ErrorCode::Timeout, "no answer", true);
  silent.load = worker_error(ErrorCode::Timeout, "no answer", true);
  fleet_.apply_probe(spec_, silent);
  EXPECT_EQ(worker()->ranks.size(), 2u);
  EXPECT_EQ(worker()->ranks[1].load, before->ranks[1].load);
  EXPECT_EQ(worker()->ranks[0].feed, before->ranks[0].feed);
  EXPECT_EQ(worker()->ranks[1].feed, before->ranks[1].feed);
}

TEST_F(FleetTest, ConflictingRankNumberExcludesTheWorker) {
  start("name=w,url=http://h:1,dp=4");
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  EXPECT_EQ(state(), WorkerState::Excluded);
  EXPECT_EQ(worker()->reason,
            "the engine has 2 data-parallel ranks, but this worker has dp=4: correct or remove dp");
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_FALSE(worker()->has_several_ranks()) << "the engine is not told a rank it may not have";
  EXPECT_TRUE(live_.empty());
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  Probe silent = probe_of_two_ranks();
  silent.sources = worker_error(ErrorCode::Timeout, "no answer", true);
  silent.load = worker_error(ErrorCode::Timeout, "no answer", true);
  fleet_.apply_probe(spec_, silent);
  EXPECT_EQ(state(), WorkerState::Excluded) << "silence does not settle it";
  EXPECT_TRUE(metric_has("sightline_rank_mismatch_total{worker=\"w\"} 1\n"));
  Probe four = probe_of_two_ranks();
  four.sources->push_back({.rank = 2, .enabled = true, .endpoint = "tcp://*:5559"});
  four.sources->push_back({.rank = 3, .enabled = true, .endpoint = "tcp://*:5560"});
  fleet_.apply_probe(spec_, four);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->ranks.size(), 4u);
  EXPECT_EQ(live_.size(), 4u);
}

TEST_F(FleetTest, SingleRankHasTheWholeEnginesLoad) {
  start();
  Probe probe = healthy_probe();
  probe.load->ranks = {{3, 1, 2, 0.5}};
  fleet_.apply_probe(spec_, probe);
  ASSERT_EQ(worker()->ranks.size(), 1u);
  EXPECT_EQ(worker()->ranks[0].waiting, 2u);
  EXPECT_EQ(worker()->ranks[0].kv_usage, 0.5);
}

TEST_F(FleetTest, CacheBlocksBelongToTheRankOrTheOnlyOne) {
  start();
  Probe probe = healthy_probe();
  probe.load->ranks = {{3, 1, 2, 0.5, 700}};
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(worker()->ranks[0].gpu_blocks, 700u);
  EXPECT_EQ(worker()->ranks[0].gpu_block_size, 16u);
  fleet_.apply_load(spec_, {.block_size = 16, .ranks = {{0, 1, 2, 0.5, 700}, {1, 1, 2, 0.5, 9}}});
  EXPECT_EQ(worker()->ranks[0].gpu_blocks, 0u) << "of which of them it is the rank is not known";
}

TEST_F(FleetTest, FirstEventGivesAnUnknownBlockSize) {
  start();
  Probe probe = healthy_probe();
  probe.load->block_size = 0;
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(state(), WorkerState::Unverified);
  tell_block_size(live_.begin()->first, 32);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->block_size.tokens(), 32u);
}

TEST_F(FleetTest, EventsThatContradictTheOperatorExcludeTheWorkerLoudly) {
  start_ready("name=w,url=http://h:1,block_size=16");
  EXPECT_EQ(worker()->block_size.by_operator(), 16u);
  const CacheId engine = live_.begin()->first;
  tell_block_size(engine, 16);
  EXPECT_EQ(state(), WorkerState::Ready);
  tell_block_size(engine, 32);
  EXPECT_EQ(state(), WorkerState::Excluded);
  EXPECT_EQ(worker()->block_size.tokens(), 32u);
  EXPECT_EQ(worker()->block_size.configured(), 16u);
  EXPECT_NE(worker()->reason.find("32 tokens, but this worker has block_size=16"),
            std::string::npos);
  EXPECT_TRUE(worker()->is_routable());
  EXPECT_TRUE(metric_has("sightline_block_size_mismatch_total{worker=\"w\"} 1\n"));
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(state(), WorkerState::Excluded) << "another look must not forget it";
}

TEST_F(FleetTest, ReplacedEngineMayHaveAnotherBlockSize) {
  start_ready("name=w,url=http://h:1,block_size=16");
  const CacheId engine = live_.begin()->first;
  tell_block_size(engine, 32);
  EXPECT_EQ(state(), WorkerState::Excluded);
  fleet_.take_facts(engine, {.health = FeedHealth::Verified});
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->block_size.tokens(), 16u);
  EXPECT_TRUE(metric_has("sightline_block_size_mismatch_total{worker=\"w\"} 1\n"));
}

TEST_F(FleetTest, EventsWinOverTheEnginesOtherAnswers) {
  start_ready();
  const auto revision = worker()->revision;
  tell_block_size(live_.begin()->first, 32);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->revision, revision) << "it was ready all the time";
  EXPECT_EQ(worker()->block_size.tokens(), 32u);
  EXPECT_TRUE(metric_has("sightline_block_size_mismatch_total{worker=\"w\"} 1\n"));
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(worker()->block_size.tokens(), 32u);
}

TEST_F(FleetTest, ConflictingEventsExcludeEvenALoneWorker) {
  start_ready();
  const CacheId engine = live_.begin()->first;
  tell_block_size(engine, 16);
  tell_block_size(engine, 8, true);
  EXPECT_EQ(state(), WorkerState::Excluded);
  EXPECT_NE(worker()->reason.find("8 tokens, earlier events had another size"), std::string::npos);
  EXPECT_TRUE(metric_has("sightline_block_size_mismatch_total{worker=\"w\"} 1\n"));
  tell_block_size(engine, 8, false);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->block_size.tokens(), 8u);
}

TEST_F(FleetTest, DifferentBlockSizesOfRanksExcludeTheWorker) {
  start();
  fleet_.apply_probe(spec_, probe_of_two_ranks());
  tell_block_size(cache_of(0), 16);
  EXPECT_EQ(state(), WorkerState::Ready);
  tell_block_size(cache_of(1), 32);
  EXPECT_EQ(state(), WorkerState::Excluded);
  EXPECT_NE(worker()->reason.find("32 tokens, those of another data-parallel rank have 16"),
            std::string::npos);
  tell_block_size(cache_of(0), 32);
  EXPECT_EQ(state(), WorkerState::Ready);
}

TEST_F(FleetTest, RefusedConnectionIsDownAndDropsItsBlocks) {
  start_ready();
  fleet_.apply_probe(spec_, failed_probe(true));
  EXPECT_EQ(state(), WorkerState::Down);
  EXPECT_FALSE(worker()->is_routable());
  EXPECT_TRUE(live_.empty());
}

TEST_F(FleetTest, AWorkerThatComesBackGetsNewEngineIds) {
  start_ready();
  const CacheId old = live_.begin()->first;
  fleet_.apply_probe(spec_, failed_probe(true));
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_EQ(state(), WorkerState::Ready);
  ASSERT_EQ(live_.size(), 1u);
  EXPECT_GT(live_.begin()->first, old);
  tell_block_size(old, 64);
  EXPECT_EQ(worker()->block_size.tokens(), 16u);
}

TEST_F(FleetTest, AProbeUnderWayIsNotTakenAgain) {
  start();
  EXPECT_EQ(fleet_.take_due_probes().workers.size(), 1u);
  clock_.advance(seconds(60));
  EXPECT_TRUE(fleet_.take_due_probes().workers.empty());
  fleet_.apply_probe(spec_, healthy_probe());
  EXPECT_TRUE(fleet_.take_due_probes().workers.empty());
  clock_.advance(seconds(5));
  EXPECT_EQ(fleet_.take_due_probes().workers.size(), 1u);
}

TEST_F(FleetTest, WorkersComeChangeAndGo) {
  const WorkerSpec a = spec_of("name=a,url=http://a:1");
  const WorkerSpec b = spec_of("name=b,url=http://b:1");
  fleet_.set_workers({a, b});
  fleet_.apply_probe(a, healthy_probe());
  fleet_.apply_probe(b, healthy_probe());
  ASSERT_EQ(live_.size(), 2u);
  const WorkerSpec moved = spec_of("name=b,url=http://elsewhere:1");
  const WorkerSpec c = spec_of("name=c,url=http://c:1");
  fleet_.set_workers({moved, c});
  EXPECT_EQ(worker("a"), nullptr);
  EXPECT_EQ(state("b"), WorkerState::Starting);
  EXPECT_EQ(worker("b")->spec.url, "http://elsewhere:1");
  EXPECT_EQ(fleet_.snapshot()->workers.size(), 2u);
  EXPECT_TRUE(live_.empty());
  EXPECT_FALSE(metric_has("worker=\"a\""));
  EXPECT_TRUE(metric_has("worker=\"b\",state=\"starting\"} 1"));
  fleet_.apply_probe(b, healthy_probe());
  EXPECT_EQ(state("b"), WorkerState::Starting) << "a probe of the old address says nothing";
}

TEST_F(FleetTest, AnUnchangedListChangesNothing) {
  start_ready();
  const auto before = worker();
  fleet_.set_workers({spec_});
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->revision, before->revision);
  EXPECT_EQ(worker()->ranks[0].load, before->ranks[0].load);
  EXPECT_EQ(live_.size(), 1u);
}

TEST_F(FleetTest, DrainingKeepsTheEnginesAndTakesNoRequests) {
  start_ready();
  const CacheId engine = live_.begin()->first;
  fleet_.set_workers({spec_of("name=w,url=http://h:1,drain=true")});
  EXPECT_EQ(state(), WorkerState::Draining);
  EXPECT_FALSE(worker()->is_routable());
  EXPECT_TRUE(live_.contains(engine));
  fleet_.set_workers({spec_});
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_TRUE(live_.contains(engine));
}

TEST_F(FleetTest, MovedEventEndpointsAreFollowed) {
  start_ready();
  Probe probe = healthy_probe();
  probe.sources->at(0).endpoint = "tcp://*:6000";
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(live_.begin()->second.endpoints.events, "tcp://h:5557") << "told once";
  fleet_.apply_probe(spec_, probe);
  ASSERT_EQ(live_.size(), 1u);
  EXPECT_EQ(live_.begin()->second.endpoints.events, "tcp://h:6000");
}

TEST_F(FleetTest, BrieflySilentEngineKeepsItsEvents) {
  start_ready();
  Probe probe = healthy_probe();
  probe.sources = worker_error(ErrorCode::Timeout, "no answer", true);
  fleet_.apply_probe(spec_, probe);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(live_.size(), 1u);
}

TEST_F(FleetTest, LoadIsPublishedWithoutANewRevisionOfTheWorker) {
  start_ready();
  const auto before = worker();
  fleet_.apply_load(spec_, {.running = 7, .waiting = 3, .kv_usage = 0.25});
  EXPECT_EQ(worker()->running, 7u);
  EXPECT_EQ(worker()->kv_usage, 0.25);
  EXPECT_EQ(worker()->block_size.tokens(), 16u);
  EXPECT_EQ(worker()->revision, before->revision);
  EXPECT_EQ(worker()->ranks[0].load, before->ranks[0].load);
  EXPECT_EQ(before->running, 1u) << "a snapshot never changes";
}

TEST_F(FleetTest, ChecksABlockSizeInTheLoadImmediately) {
  const std::vector specs{spec_of("name=a,url=http://a:1"), spec_of("name=b,url=http://b:1")};
  fleet_.set_workers(specs);
  for (const WorkerSpec& spec : specs) fleet_.apply_probe(spec, healthy_probe());
  ASSERT_EQ(state("a"), WorkerState::Ready);
  ASSERT_EQ(state("b"), WorkerState::Ready);
  fleet_.apply_load(specs[1], {.running = 7, .block_size = 32});
  EXPECT_EQ(worker("b")->running, 7u);
  EXPECT_EQ(worker("b")->block_size.tokens(), 32u);
  EXPECT_EQ(state("a"), WorkerState::Ready);
  EXPECT_EQ(state("b"), WorkerState::Excluded);
  fleet_.apply_load(specs[1], {.block_size = 16});
  EXPECT_EQ(state("b"), WorkerState::Ready);
}

TEST_F(FleetTest, AWorkerThatContradictsItsConfigurationExcludesNoOther) {
  start_all({spec_of("name=a,url=http://a:1,block_size=16"), spec_of("name=b,url=http://b:1")});
  tell_block_size(cache_of("a"), 32);
  EXPECT_EQ(state("a"), WorkerState::Excluded);
  EXPECT_EQ(state("b"), WorkerState::Ready);
}

TEST_F(FleetTest, OneWorkersEventsCorrectTheMetricsOfAll) {
  start_all({spec_of("name=a,url=http://a:1"), spec_of("name=b,url=http://b:1"),
             spec_of("name=c,url=http://c:1"), spec_of("name=d,url=http://d:1")});
  tell_block_size(cache_of("b"), 32);
  for (const char* name : {"a", "b", "c", "d"}) {
    EXPECT_EQ(state(name), WorkerState::Ready) << name;
    EXPECT_EQ(worker(name)->block_size.tokens(), 32u) << name;
    EXPECT_EQ(worker(name)->block_size.configured(), 16u) << name;
  }
  for (int i = 0; i < 3; ++i) {
    fleet_.apply_load(spec_of("name=c,url=http://c:1"), {.block_size = 16});
    EXPECT_EQ(worker("c")->block_size.tokens(), 32u) << "the next reading tells nothing new";
  }
  tell_block_size(cache_of("c"), 16);
  EXPECT_EQ(state("c"), WorkerState::Excluded);
  EXPECT_EQ(state("a"), WorkerState::Ready);
}

TEST_F(FleetTest, DeviatingWorkerExcludesNoOtherDuringARestart) {
  const std::vector specs{spec_of("name=odd,url=http://a:1"), spec_of("name=b,url=http://b:1"),
                          spec_of("name=c,url=http://c:1"), spec_of("name=d,url=http://d:1")};
  start_all(specs);
  for (const char* name : {"b", "c", "d"}) tell_block_size(cache_of(name), 16);
  tell_block_size(cache_of("odd"), 8);
  EXPECT_EQ(state("odd"), WorkerState::Excluded);
  EXPECT_EQ(fleet_.snapshot()->block_size, 16U);
  for (const std::size_t restarting : {1U, 2U}) {
    fleet_.apply_probe(specs[restarting], failed_probe(true));
    fleet_.apply_probe(specs[restarting], healthy_probe());
    EXPECT_EQ(state("odd"), WorkerState::Excluded);
    EXPECT_EQ(worker("b")->block_size.tokens(), 16U);
    for (const char* name : {"b", "c", "d"}) EXPECT_EQ(state(name), WorkerState::Ready) << name;
  }
}

TEST_F(FleetTest, DeviatingEventsDoNotOutvoteWorkersOfAnotherSize) {
  const std::vector specs{spec_of("name=a,url=http://a:1"), spec_of("name=b,url=http://b:1"),
                          spec_of("name=odd,url=http://c:1")};
  start_all(specs);
  fleet_.apply_load(specs[2], {.block_size = 32});
  tell_block_size(cache_of("odd"), 32);
  EXPECT_EQ(state("odd"), WorkerState::Excluded);
  EXPECT_EQ(state("a"), WorkerState::Ready);
  EXPECT_EQ(worker("a")->block_size.tokens(), 16u);
}

TEST_F(FleetTest, WorkerWithAnUnknownPastStaysReadyWithAReason) {
  start("name=w,url=http://h:1,events=tcp://h:5557");
  Probe probe = healthy_probe();
  probe.sources = worker_error(ErrorCode::NotFound, "/kv_event_sources answers 404", false);
  fleet_.apply_probe(spec_, probe);
  ASSERT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason, "");
  tell_forgotten(cache_of("w"), true);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason,
            "no replay endpoint: blocks from before the router connected, or from lost events, are "
            "unknown");
  EXPECT_TRUE(worker()->is_precise(worker()->ranks.at(0)));
  // A cleared cache has no earlier blocks.
  tell_forgotten(cache_of("w"), false);
  EXPECT_EQ(worker()->reason, "");
}

TEST_F(FleetTest, AnsweringReplayEndpointCompletesThePast) {
  start_ready();
  tell_forgotten(cache_of("w"), true);
  EXPECT_EQ(worker()->reason, "");
  tell_forgotten(cache_of("w"), true, true);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(worker()->reason, "its replay endpoint does not answer: earlier blocks are unknown");
}

Probe probe_with_adapter(const std::string& root, double now_s) {
  Probe probe = healthy_probe();
  probe.models =
      std::vector<ServedModel>{{"m", "", 4096, "/m", now_s}, {"ad", "m", 0, root, now_s}};
  return probe;
}

TEST_F(FleetTest, ChangedAdapterIgnoresEarlierEvents) {
  start();
  fleet_.apply_probe(spec_, probe_with_adapter("/one", 100));
  fleet_.apply_probe(spec_, probe_with_adapter("/one", 105));
  const CacheId first = cache_of("w");
  EXPECT_TRUE(live_.at(first).adapters.apply_to("ad", 1));
  fleet_.apply_probe(spec_, probe_with_adapter("/other", 110));
  const CacheId second = cache_of("w");
  EXPECT_NE(first, second);
  EXPECT_FALSE(live_.contains(first));
  EXPECT_FALSE(live_.at(second).adapters.apply_to("ad", 110));
  EXPECT_TRUE(live_.at(second).adapters.apply_to("ad", 112));
  EXPECT_EQ(state(), WorkerState::Ready);
  // The next engine's replay is not older because the worker was down.
  fleet_.apply_probe(spec_, failed_probe(true));
  fleet_.apply_probe(spec_, probe_with_adapter("/other", 120));
  EXPECT_FALSE(live_.at(cache_of("w")).adapters.apply_to("ad", 110));
}

TEST_F(FleetTest, UnchangedProbePublishesNothing) {
  start();
  fleet_.apply_probe(spec_, probe_with_adapter("/one", 100));
  const auto before = fleet_.snapshot();
  fleet_.apply_probe(spec_, probe_with_adapter("/one", 105));  // as vLLM does: the time of the list
  EXPECT_EQ(fleet_.snapshot(), before);
}

TEST_F(FleetTest, AdaptersBeyondThoseThatAreRememberedAreCounted) {
  start();
  Probe probe = healthy_probe();
  probe.models = std::vector<ServedModel>{{"m", "", 4096}};
  for (std::size_t i = 0; i < content::kAdaptersMax; ++i) {
    probe.models->push_back({"a" + std::to_string(i), "m", 0, "/one", 100});
  }
  fleet_.apply_probe(spec_, probe);
  EXPECT_FALSE(metric_has("adapters-max"));
  probe.models->push_back({"more", "m", 0, "/one", 100});
  fleet_.apply_probe(spec_, probe);
  fleet_.apply_probe(spec_, probe);
  EXPECT_TRUE(metric_has(R"(sightline_limit_hits_total{limit="adapters-max"} 1)"));
}

TEST_F(FleetTest, AModelListThatIsMissedChangesNoAdapter) {
  start();
  fleet_.apply_probe(spec_, probe_with_adapter("/one", 100));
  const CacheId first = cache_of("w");
  Probe probe = healthy_probe();
  probe.models = worker_error(ErrorCode::NotFound, "/v1/models answers 404", false);
  fleet_.apply_probe(spec_, probe);
  fleet_.apply_probe(spec_, probe_with_adapter("/one", 110));
  EXPECT_EQ(cache_of("w"), first);
}

}  // namespace
}  // namespace sightline::fleet
