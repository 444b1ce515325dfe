// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/replica_metrics.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/manual_clock.h"

namespace sightline::admin {
namespace {

using followed::FollowedStatus;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ReplicaMetricsTest : public testing::Test {
 protected:
  static FollowedStatus status(std::uint32_t cache) {
    FollowedStatus status;
    status.cache = CacheId{cache};
    status.stream = {.worker = "w", .rank = cache};
    return status;
  }
  [[nodiscard]] bool shows(const std::string& line) const {
    return metrics.scrape().find("\nsightline_replica_" + line + "\n") != std::string::npos;
  }

  test::ManualClock clock;
  runtime::Metrics metrics;
  ReplicaMetrics replicas{metrics, clock};
};

TEST_F(ReplicaMetricsTest, KeepsCountsOfStreamsThatEnd) {
  replicas.follow(CacheId{0});
  FollowedStatus now = status(0);
  now.statistics.frames = 5;
  now.statistics.relearn_put_off = 1;
  now.statistics.dropped[static_cast<std::size_t>(follower::Drop::OtherEpoch)] = 2;
  now.refused[static_cast<std::size_t>(followed::Refusal::WrongTag)] = 3;
  replicas.tell(std::vector{now});
  replicas.tell(std::vector{now});
  EXPECT_TRUE(shows(R"(frames_total{worker="w"} 5)"));
  EXPECT_TRUE(shows(R"(stream_events_total{worker="w",event="relearn-put-off"} 1)"));
  EXPECT_TRUE(shows(R"(dropped_total{worker="w",reason="other-epoch"} 2)"));
  EXPECT_TRUE(shows(R"(refused_total{worker="w",reason="wrong-tag"} 3)"));
  now.statistics.frames = 7;
  replicas.forget(CacheId{0}, now);
  now.statistics.frames = 9;
  replicas.tell(std::vector{now});
  EXPECT_TRUE(shows(R"(frames_total{worker="w"} 7)"));
  replicas.follow(CacheId{1});
  now = status(1);
  now.statistics.frames = 1;
  replicas.tell(std::vector{now});
  EXPECT_TRUE(shows(R"(frames_total{worker="w"} 8)"));
}

TEST_F(ReplicaMetricsTest, ShowsTheWorstRankOfTheWorker) {
  FollowedStatus first = status(0);
  FollowedStatus second = status(1);
  for (const std::uint32_t rank : {0, 1}) replicas.follow(CacheId{rank});
  first.at.head = 9;
  first.at.position = 9;
  second.at.head = 9;
  second.at.position = 4;
  first.at.waiting_bytes = second.at.waiting_bytes = 100;
  first.at.lag_by_stamp = milliseconds(500);
  first.at.digest_equal_at = clock.now();
  replicas.tell(std::vector{first, second});
  EXPECT_TRUE(shows(R"(behind_frames{worker="w"} 5)"));
  EXPECT_TRUE(shows(R"(waiting_bytes{worker="w"} 200)"));
  EXPECT_TRUE(shows(R"(lag_seconds{worker="w"} 0.5)"));
  EXPECT_TRUE(shows(R"(digest_equal_timestamp_seconds{worker="w"} 0)")) << "one never was";
  second.at.digest_equal_at = clock.now();
  clock.advance(seconds(10));
  first.at.digest_equal_at = clock.now();
  replicas.tell(std::vector{first, second});
  EXPECT_TRUE(shows(R"(digest_equal_timestamp_seconds{worker="w"} 1576800000)"));
}

}  // namespace
}  // namespace sightline::admin
