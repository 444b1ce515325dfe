// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/served.h"

#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

FleetSnapshot fleet_of(std::vector<Worker> workers, AdapterNames adapters = {}) {
  FleetSnapshot fleet;
  fleet.adapter_names = std::make_shared<const AdapterNames>(std::move(adapters));
  for (Worker& worker : workers) {
    fleet.workers.push_back(std::make_shared<const Worker>(std::move(worker)));
  }
  return fleet;
}

Worker worker_of(std::vector<ServedModel> models, std::uint32_t max_model_len = 0) {
  Worker worker;
  worker.state = WorkerState::Unverified;
  worker.models = std::move(models);
  worker.max_model_len = max_model_len;
  return worker;
}

TEST(Served, ListsModelsOnceAndAdaptersOfAnyWorker) {
  const Served served = served_by(
      fleet_of({worker_of({{"m", "x"}, {"ad", ""}}), worker_of({{"ad", "m"}, {"other", "m"}})},
               {"ad", "other"}));
  EXPECT_EQ(served.models.all(),
            (std::vector<ServedNames::Model>{{"m", ""}, {"ad", "m"}, {"other", "m"}}));
  EXPECT_EQ(served.adapter("ad"), "ad");
  EXPECT_EQ(served.adapter("m"), std::nullopt);
  EXPECT_EQ(served.adapter("unknown"), std::nullopt);
  EXPECT_EQ(served.adapter(std::nullopt), std::nullopt);
  EXPECT_EQ(served.models.find("unknown"), nullptr);
}

TEST(Served, PromptMustFitTheLongestUsableContext) {
  const auto longest = [](std::vector<std::pair<std::uint32_t, WorkerState>> told) {
    std::vector<Worker> workers;
    for (const auto& [tokens, state] : told) {
      workers.push_back(worker_of({}, tokens));
      workers.back().state = state;
    }
    return served_by(fleet_of(std::move(workers))).prompt_tokens_max;
  };
  using enum WorkerState;
  EXPECT_EQ(longest({{400, Ready}, {300, Excluded}, {1, Unverified}}), 400U);
  EXPECT_EQ(longest({{300, Ready}, {400, Down}, {500, Draining}, {600, Suspect}}), 300U);
  EXPECT_EQ(longest({{300, Suspect}, {400, Down}, {500, Draining}}), 300U) << "the last resort";
  EXPECT_EQ(longest({{400, Ready}, {0, Unverified}}), 0U) << "one may take more";
  EXPECT_EQ(longest({{400, Down}}), 0U);
  EXPECT_EQ(longest({}), 0U);
}

TEST(Served, BlockSizeComesFromVerifiedWorkers) {
  Worker unverified;
  unverified.block_size = BlockSize(32);
  unverified.state = WorkerState::Unverified;
  Worker ready;
  ready.block_size = BlockSize(16);
  ready.state = WorkerState::Ready;
  EXPECT_EQ(served_by(fleet_of({unverified, ready})).block_size, 16U);
  EXPECT_EQ(served_by(fleet_of({ready, unverified})).block_size, 16U);
}

// Otherwise the keys of the first prompts would have to be made again at its first events.
TEST(Served, BlockSizeComesFromTheFirstWorkerWithoutVerifiedEvents) {
  Worker unverified;
  unverified.state = WorkerState::Unverified;
  EXPECT_EQ(served_by(fleet_of({unverified})).block_size, std::nullopt);
  Worker guessed = unverified;
  guessed.block_size.take_from_server(32);
  Worker other = unverified;
  other.block_size = BlockSize(64);
  EXPECT_EQ(served_by(fleet_of({unverified, guessed, other})).block_size, 32U);
}

TEST(Served, ListsEachFamilyOnce) {
  Worker other;
  other.spec.family = contract::EngineFamily::Sglang;
  EXPECT_EQ(served_by(fleet_of({{}, other, {}})).families,
            (std::vector{contract::EngineFamily::Vllm, contract::EngineFamily::Sglang}));
}

// Otherwise all workers' data would be gathered again without need.
TEST(Served, NothingChangesWithTheLoadOfAWorker) {
  Worker before = worker_of({{"m", ""}}, 400);
  before.state = WorkerState::Ready;
  before.block_size = BlockSize(16);
  Worker after = before;
  after.running = 3;
  after.kv_usage = 0.5;
  after.reason = "joined late";
  EXPECT_TRUE(serve_alike(before, after));
}

TEST(Served, EachThingThatIsGatheredIsAChange) {
  Worker before = worker_of({{"m", ""}}, 400);
  before.state = WorkerState::Ready;
  before.block_size = BlockSize(16);
  Worker other = worker_of({{"m", ""}}, 400);
  other.state = WorkerState::Unverified;
  other.block_size = BlockSize(64);
  const std::vector<void (*)(Worker&)> changes = {
      [](Worker& worker) {
        worker.models.push_back({"ad", "m"});
      },
      [](Worker& worker) { worker.max_model_len = 500; },
      [](Worker& worker) { worker.block_size = BlockSize(32); },
      [](Worker& worker) { worker.state = WorkerState::Unverified; },
      [](Worker& worker) { worker.spec.family = contract::EngineFamily::Sglang; }};
  for (const auto change : changes) {
    Worker after = before;
    change(after);
    EXPECT_FALSE(serve_alike(before, after));
    EXPECT_NE(served_by(fleet_of({other, before})), served_by(fleet_of({other, after})));
  }
}

Probe probe_of(std::vector<ServedModel> models) {
  return {.health = Done{},
          .models = std::move(models),
          .sources = one_source(),
          .load = ServerLoad{.block_size = 16}};
}

class ServedViewTest : public FleetFixture {};

TEST_F(ServedViewTest, IsRebuiltAfterAChangeButNotAfterALoadReading) {
  const WorkerSpec spec = spec_of("name=w,url=http://h:1");
  const ServedView served(fleet_);
  const auto is_true = [&] { return *served.read() == served_by(*fleet_.snapshot()); };
  fleet_.set_workers({spec});
  EXPECT_TRUE(is_true());
  fleet_.apply_probe(spec, probe_of({{"m", "", 4096}}));
  EXPECT_TRUE(is_true());
  fleet_.apply_probe(spec, probe_of({{"m", "", 4096}, {"ad", "m"}}));
  EXPECT_TRUE(is_true());
  const auto before = served.read();
  fleet_.apply_load(spec, {.running = 7});
  EXPECT_EQ(served.read(), before);
  tell_health(cache_of("w"), FeedHealth::Disconnected);
  EXPECT_TRUE(is_true());
  EXPECT_EQ(served.read()->block_size, 16U) << "what its server tells";
  fleet_.set_workers({});
  EXPECT_TRUE(is_true());
}

}  // namespace
}  // namespace sightline::fleet
