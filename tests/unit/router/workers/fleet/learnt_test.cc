// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/learnt.h"

#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

TEST(Learnt, NamesTheRankThatLacksSomething) {
  Worker worker = view_of(spec_of("name=w,url=http://h:1"));
  worker.was_asked = true;
  worker.state = WorkerState::Ready;
  worker.ranks.resize(2);
  worker.ranks[1].number = 1;
  worker.ranks[0].feed.emplace();
  worker.ranks[1].feed.emplace();
  worker.ranks[1].feed->unverified = "replaying events";
  FleetSnapshot fleet;
  fleet.workers.push_back(std::make_shared<const Worker>(worker));
  EXPECT_EQ(why_not_learnt(fleet, {worker.spec}),
            "1 of 1 workers are pending, first w: rank 1: replaying events");
  EXPECT_EQ(why_not_learnt(fleet, {}), "the new worker list is not applied yet");
}

class LearntFleet : public FleetFixture {};

TEST_F(LearntFleet, IsNotLearntBeforeEveryWorkerWasAsked) {
  const std::vector<WorkerSpec> workers{spec_of("name=w,url=http://h:1")};
  fleet_.set_workers(workers);
  EXPECT_EQ(why_not_learnt(*fleet_.snapshot(), workers),
            "1 of 1 workers are pending, first w: was not asked yet");
  Probe refused;
  refused.health = Error{ErrorCode::Unavailable, Blame::Worker, true, "refused", {}, {}};
  fleet_.apply_probe(workers[0], refused);
  EXPECT_EQ(why_not_learnt(*fleet_.snapshot(), workers), "");
}

}  // namespace
}  // namespace sightline::fleet
