// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/workers/fleet/fleet_fixture.h"

namespace sightline::fleet {
namespace {

class DueProbes : public FleetFixture {};

TEST_F(DueProbes, OfManyDueProbesTheLongestDueAreTakenFirst) {
  std::vector<WorkerSpec> workers;
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    workers.push_back(spec_of("name=w" + n + ",url=http://h:" + std::to_string(8000 + i)));
  }
  fleet_.set_workers(workers);
  std::vector<std::string> order;
  for (int turn = 0; turn < 5; ++turn) {
    const auto due = fleet_.take_due_probes(2);
    for (const WorkerSpec& spec : due.workers) {
      order.push_back(spec.name);
      fleet_.apply_probe(spec, {.health = worker_error(ErrorCode::Timeout, "no answer", true)});
    }
    clock_.advance(seconds(20));  // all that were probed are due again
  }
  const std::vector<std::string> want{"w0", "w1", "w2", "w3", "w4", "w0", "w1", "w2", "w3", "w4"};
  EXPECT_EQ(order, want);
}

}  // namespace
}  // namespace sightline::fleet
