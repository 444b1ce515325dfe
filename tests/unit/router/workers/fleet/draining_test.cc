// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

class DrainingTest : public FleetFixture {};

TEST_F(DrainingTest, AgentDrainsItsWorkerUntilItStopsDraining) {
  const auto spec = spec_of("name=w,url=http://h:1,agent=true");
  fleet_.set_workers({spec});
  fleet_.apply_probe(spec, {.health = Done{}});
  const CacheId cache = cache_of("w");
  operations::CacheFacts facts{
      .health = FeedHealth::Verified, .block_size = 16, .sequence = 1, .draining = true};
  fleet_.take_facts(cache, facts);
  EXPECT_EQ(state(), WorkerState::Draining);
  EXPECT_EQ(worker()->reason, "its agent was asked to drain it: takes no new requests");
  facts.draining = false;
  fleet_.take_facts(cache, facts);
  EXPECT_EQ(state(), WorkerState::Ready);
  EXPECT_EQ(cache_of("w"), cache);
}

}  // namespace
}  // namespace sightline::fleet
