// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/event_metrics.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::admin {
namespace {

using events::FeedStatus;
using std::chrono::seconds;

class EventMetricsTest : public testing::Test {
 protected:
  static FeedStatus status(std::uint32_t engine, std::uint64_t applied) {
    FeedStatus status{.cache = CacheId{engine}};
    status.normaliser.events = applied;
    return status;
  }
  [[nodiscard]] testing::AssertionResult shows(const std::string& line) const {
    const std::string text = metrics.scrape();
    return text.find(line + "\n") != std::string::npos ? testing::AssertionSuccess()
                                                       : testing::AssertionFailure()
                                                             << line << " is not in\n"
                                                             << text;
  }

  runtime::Metrics metrics;
  EventMetrics events{metrics};
};

TEST_F(EventMetricsTest, LagOfWorkerIsLagOfSlowestRank) {
  for (const std::uint32_t rank : {0, 1}) events.follow(CacheId{rank}, "w");
  std::vector ranks{status(0, 1), status(1, 1)};
  ranks[0].lag = seconds(30);
  events.tell("w", ranks);
  EXPECT_TRUE(shows("sightline_event_lag_seconds{worker=\"w\"} 30"));
  EXPECT_TRUE(shows("sightline_events_applied_total{worker=\"w\"} 2"));
}

TEST_F(EventMetricsTest, CountsEventsOfRemovedEngineOnce) {
  events.follow(CacheId{0}, "w");
  events.tell("w", std::vector{status(0, 5)});
  events.forget(CacheId{0}, status(0, 7));
  events.tell("w", std::vector{status(0, 7)});
  EXPECT_TRUE(shows("sightline_events_applied_total{worker=\"w\"} 7"));
  events.follow(CacheId{1}, "w");
  events.tell("w", std::vector{status(1, 2)});
  EXPECT_TRUE(shows("sightline_events_applied_total{worker=\"w\"} 9"));
}

TEST_F(EventMetricsTest, RemovedWorkerGetsNoNewCounters) {
  events.follow(CacheId{0}, "w");
  events.forget(CacheId{0}, std::nullopt);
  metrics.remove_worker("w");
  events.forget(CacheId{0}, status(0, 7));
  EXPECT_EQ(metrics.scrape().find("worker=\"w\""), std::string::npos);
}

TEST_F(EventMetricsTest, ShowsRestartsAndBufferOverflows) {
  events.follow(CacheId{0}, "w");
  FeedStatus bad = status(0, 1);
  bad.stream.restarts = 2;
  bad.stream.buffer_overflows = 3;
  events.tell("w", std::vector{bad});
  EXPECT_TRUE(shows("sightline_event_restarts_total{worker=\"w\"} 2"));
  EXPECT_TRUE(shows(R"(sightline_event_errors_total{worker="w",kind="buffer_overflow"} 3)"));
}

TEST_F(EventMetricsTest, ShowsUnknownAndIgnoredEvents) {
  events.follow(CacheId{0}, "w");
  FeedStatus odd = status(0, 1);
  odd.normaliser.ignored_type = 1;
  odd.normaliser.unknown_field = 2;
  odd.normaliser.groups_refused = 3;
  odd.stream.late_joins = 4;
  odd.normaliser.ignored_group = 5;
  odd.normaliser.ignored_medium = 6;
  odd.normaliser.reports_repeated = 7;
  for (int i = 0; i < 2; ++i) events.tell("w", std::vector{odd});
  for (const auto* series : {"errors_total{worker=\"w\",kind=\"unknown_type\"} 1",
                             "errors_total{worker=\"w\",kind=\"unknown_field\"} 2",
                             "errors_total{worker=\"w\",kind=\"too_many_groups\"} 3",
                             "errors_total{worker=\"w\",kind=\"late_join\"} 4"}) {
    EXPECT_TRUE(shows(std::string("sightline_event_") + series));
  }
  for (const auto* series : {"reason=\"other_group\"} 5", "reason=\"other_medium\"} 6",
                             "reason=\"repeated_report\"} 7"}) {
    EXPECT_TRUE(shows(std::string("sightline_events_ignored_total{worker=\"w\",") + series));
  }
}

TEST_F(EventMetricsTest, ShowsBlocksThatTheFullIndexRefused) {
  events.tell_index(5, 0);
  EXPECT_TRUE(shows("sightline_index_refused_blocks_total 0"));
  events.tell_index(7, 2);
  events.tell_index(6, 3);
  EXPECT_TRUE(shows("sightline_index_keys 6"));
  EXPECT_TRUE(shows("sightline_index_refused_blocks_total 3"));
}

TEST_F(EventMetricsTest, ConcurrentReadingsCountEachEventOnce) {
  events.follow(CacheId{0}, "w");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (std::uint64_t total = 1; total <= 200; ++total) {
        events.tell("w", std::vector{status(0, total)});
      }
    });
  }
  threads.clear();
  EXPECT_TRUE(shows("sightline_events_applied_total{worker=\"w\"} 200"));
}

}  // namespace
}  // namespace sightline::admin
