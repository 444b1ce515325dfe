// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/election/elector.h"

#include <atomic>

#include <gtest/gtest.h>

#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/run_task.h"

namespace sightline::election {
namespace {

using fakes::eventually;

const object::Key kLease{"system", "mmr"};

Elector::Options options_of(const std::string& identity, std::atomic<bool>& has_lost) {
  return {.election = {.lease = kLease, .identity = identity},
          .told = {.on_lead = {}, .on_lost = [&has_lost] { has_lost = true; }},
          .seed = 1};
}

TEST(Elector, LeadsOnlyUntilItsLeaseIsInDoubt) {
  fakes::FakeApiServer server;
  runtime::Metrics metrics;
  test::ManualClock clock;
  std::atomic<bool> has_lost{false};
  Elector elector(options_of("a", has_lost), server, clock, metrics);
  ASSERT_TRUE(eventually([&] { return elector.still_leads(); }));
  EXPECT_NE(metrics.scrape().find("leader_election_master_status{name=\"mmr\"} 1"),
            std::string::npos);
  clock.advance(std::chrono::seconds(11));
  EXPECT_FALSE(elector.still_leads());
  EXPECT_TRUE(eventually([&] { return has_lost.load(); }));
}

TEST(Elector, GivesTheLeaseBackWhenItStops) {
  fakes::FakeApiServer server;
  runtime::Metrics metrics;
  std::atomic<bool> has_lost{false};
  Elector elector(options_of("a", has_lost), server, system_clock(), metrics);
  ASSERT_TRUE(eventually([&] { return elector.still_leads(); }));
  elector.release();
  EXPECT_FALSE(elector.still_leads());
  const auto lease = server.find(lease_resource(), kLease);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->at({"spec", "holderIdentity"}).text(), "");
  EXPECT_EQ(lease->at({"spec", "leaseDurationSeconds"}).integer(), 1);
  EXPECT_FALSE(has_lost);
}

}  // namespace
}  // namespace sightline::election
