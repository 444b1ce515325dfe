// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/open_files.h"

#include <gtest/gtest.h>

namespace sightline::process {
namespace {

contract::ServeSettings with_workers(std::size_t workers, std::uint32_t ranks = 0) {
  contract::ServeSettings settings;
  settings.workers.resize(workers);
  for (auto& worker : settings.workers) worker.ranks = ranks;
  return settings;
}

TEST(OpenFilesPlan, GivesAllThatIsConfiguredWhereThereIsRoom) {
  const auto plan = plan_open_files(1'000'000, with_workers(100), 8);
  EXPECT_EQ(plan.clients_max, 16384U);
  EXPECT_EQ(plan.idle_per_thread_max, 256U);
  EXPECT_LT(plan.descriptor_max, 1'000'000);
}

TEST(OpenFilesPlan, KeepsAConnectionToEachOfManyEngines) {
  EXPECT_GE(plan_open_files(1'000'000, with_workers(1000), 8).idle_per_thread_max, 1000U);
}

// The descriptors of all connections at their limits: clients, each with a request at an engine,
// frontends, and all idle connections.
std::size_t used(const OpenFilesPlan& plan, const contract::ServeSettings& settings,
                 std::size_t threads) {
  const std::size_t requests =
      std::min<std::size_t>(plan.clients_max, settings.server.concurrent_requests_max);
  const std::size_t kept = plan.idle_per_thread_max * threads;
  const std::size_t kept_to_routers = contract::is_router(settings.roles) ? 0 : kept;
  return plan.clients_max + plan.frontends_max + requests + kept + kept_to_routers;
}

// Any limit leaves enough for the engines' events, probes and downloads.
class FewOpenFiles : public testing::TestWithParam<contract::Roles> {};

TEST_P(FewOpenFiles, AreNeverPromisedTwice) {
  for (const std::size_t limit : {200U, 256U, 1024U, 4096U, 20'000U, 65'536U}) {
    for (const std::size_t workers : {0U, 2U, 100U, 1000U}) {
      for (const std::size_t threads : {1U, 2U, 16U}) {
        auto settings = with_workers(workers);
        settings.roles = GetParam();
        const auto plan = plan_open_files(limit, settings, threads);
        EXPECT_GE(plan.clients_max, 8U);
        EXPECT_LE(plan.clients_max, settings.server.connections_max);
        EXPECT_LT(used(plan, settings, threads), static_cast<std::size_t>(plan.descriptor_max))
            << limit << " files, " << workers << " workers, " << threads << " threads";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfAProcessOfARole, FewOpenFiles,
                         testing::Values(contract::Roles::Both, contract::Roles::Frontend));

TEST(OpenFilesPlan, GivesFrontendsWhatARouterWithoutClientsHas) {
  auto settings = with_workers(2);
  EXPECT_EQ(plan_open_files(1'000'000, settings, 2).frontends_max, 4096U);
  EXPECT_EQ(plan_open_files(1024, settings, 2).frontends_max, 64U);
  settings.roles = contract::Roles::Router;
  EXPECT_EQ(plan_open_files(1024, settings, 2).frontends_max, 512U);
  settings.roles = contract::Roles::Frontend;
  EXPECT_EQ(plan_open_files(1'000'000, settings, 2).frontends_max, 0U);
}

TEST(OpenFilesPlan, CountsRanksAndEnginesThatMayCome) {
  const auto few = plan_open_files(8192, with_workers(2), 2);
  const auto ranks = plan_open_files(8192, with_workers(2, 16), 2);
  const auto many = plan_open_files(8192, with_workers(32), 2);
  EXPECT_GT(few.clients_max, ranks.clients_max);
  EXPECT_EQ(ranks.clients_max, many.clients_max);
  const auto none = plan_open_files(8192, with_workers(0), 2);
  const auto eight = plan_open_files(8192, with_workers(8), 2);
  EXPECT_LT(eight.clients_max, none.clients_max);
  EXPECT_LT(none.clients_max, 8192U / 2);
}

TEST(OpenFilesPlan, TakesFewerClientsIfTheyAreConfigured) {
  auto settings = with_workers(2);
  settings.server.connections_max = 10;
  EXPECT_EQ(plan_open_files(65536, settings, 2).clients_max, 10U);
}

}  // namespace
}  // namespace sightline::process
