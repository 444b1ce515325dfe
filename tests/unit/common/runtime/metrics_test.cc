// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/metrics.h"

#include <array>
#include <atomic>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::runtime {
namespace {

using contract::MetricSpec;
using contract::MetricType;

constexpr std::array kBounds = {1.0, 2.5};
constexpr MetricSpec kSeen{
    "sightline_test_seen_total", MetricType::Counter, "Things seen.", {"worker", "kind"}};
constexpr MetricSpec kLevel{"sightline_test_level", MetricType::Gauge, "Level.", {"worker"}};
constexpr MetricSpec kSize{"sightline_test_size", MetricType::Histogram, "Size.", {}, kBounds};

TEST(Metrics, TheTextIsThePrometheusFormatExactly) {
  Metrics metrics;
  metrics.counter(kSeen, {"w0", "a\"b\\c\nd"}).add();
  metrics.counter(kSeen, {"w1", "x"}).add(2.5);
  metrics.gauge(kLevel, {"w0"}).set(-1);
  const Histogram size = metrics.histogram(kSize);
  for (const double value : {0.5, 1.0, 2.0, 3.0}) size.observe(value);
  EXPECT_EQ(metrics.scrape(),
            "# HELP sightline_test_level Level.\n"
            "# TYPE sightline_test_level gauge\n"
            "sightline_test_level{worker=\"w0\"} -1\n"
            "# HELP sightline_test_seen_total Things seen.\n"
            "# TYPE sightline_test_seen_total counter\n"
            "sightline_test_seen_total{worker=\"w0\",kind=\"a\\\"b\\\\c\\nd\"} 1\n"
            "sightline_test_seen_total{worker=\"w1\",kind=\"x\"} 2.5\n"
            "# HELP sightline_test_size Size.\n"
            "# TYPE sightline_test_size histogram\n"
            "sightline_test_size_count 4\n"
            "sightline_test_size_sum 6.5\n"
            "sightline_test_size_bucket{le=\"1\"} 2\n"
            "sightline_test_size_bucket{le=\"2.5\"} 3\n"
            "sightline_test_size_bucket{le=\"+Inf\"} 4\n");
}

TEST(Metrics, TheSameLabelsAreTheSameSeries) {
  Metrics metrics;
  metrics.gauge(kLevel, {"w0"}).add(2);
  metrics.gauge(kLevel, {"w0"}).add(3);
  EXPECT_NE(metrics.scrape().find("{worker=\"w0\"} 5\n"), std::string::npos);
}

TEST(Metrics, CountersNeverFall) {
  Metrics metrics;
  const Counter seen = metrics.counter(kSeen, {"w0", "x"});
  seen.add(2);
  seen.add(-1);
  EXPECT_NE(metrics.scrape().find("} 2\n"), std::string::npos);
}

TEST(Metrics, RemovedWorkerLosesItsSeriesAndOldHandlesStaySafe) {
  Metrics metrics;
  const Counter old = metrics.counter(kSeen, {"w0", "x"});
  old.add();
  metrics.counter(kSeen, {"w1", "w0"}).add();
  metrics.gauge(kLevel, {"w0"}).set(1);
  metrics.histogram(kSize).observe(1);
  metrics.remove_worker("w0");
  old.add();
  const std::string text = metrics.scrape();
  EXPECT_EQ(text.find("worker=\"w0\""), std::string::npos);
  EXPECT_NE(text.find("{worker=\"w1\",kind=\"w0\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("sightline_test_size_count 1\n"), std::string::npos);
  metrics.counter(kSeen, {"w0", "x"}).add();
  EXPECT_NE(metrics.scrape().find("{worker=\"w0\",kind=\"x\"} 1\n"), std::string::npos);
}

TEST(Metrics, BeginCreatesCountersBeforeTheirFirstEvent) {
  static constexpr std::array kBorn = {contract::LabelValues{"", "b"},
                                       contract::LabelValues{"", "c"}};
  static constexpr std::array<contract::LabelValues, 1> kOthers = {contract::LabelValues{"x"}};
  constexpr MetricSpec plain{"a_total", MetricType::Counter, "A."};
  constexpr MetricSpec open{"b_total", MetricType::Counter, "B.", {"code"}};
  constexpr MetricSpec listed{"c_total", MetricType::Counter,    "C.",   {"limit"},
                              {},        contract::Combine::Sum, kOthers};
  constexpr MetricSpec of_worker{"d_total", MetricType::Counter, "D.", {contract::kWorkerLabel}};
  constexpr MetricSpec both{"e_total", MetricType::Counter,    "E.", {contract::kWorkerLabel, "k"},
                            {},        contract::Combine::Sum, kBorn};
  constexpr MetricSpec gauge{"f", MetricType::Gauge, "F."};
  const std::array<const MetricSpec*, 6> all = {&plain, &open, &listed, &of_worker, &both, &gauge};
  Metrics metrics;
  const auto lines = [&] {
    std::string found;
    std::istringstream text(metrics.scrape());
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with('#')) found += line + ";";
    }
    return found;
  };
  metrics.begin(all);
  EXPECT_EQ(lines(), "a_total 0;c_total{limit=\"x\"} 0;");
  metrics.counter(of_worker, {"w1"}).add(3);
  metrics.begin_worker(all, "w1");
  EXPECT_EQ(lines(),
            "a_total 0;c_total{limit=\"x\"} 0;d_total{worker=\"w1\"} 3;"
            "e_total{worker=\"w1\",k=\"b\"} 0;e_total{worker=\"w1\",k=\"c\"} 0;");
  metrics.remove_worker("w1");
  EXPECT_EQ(lines(), "a_total 0;c_total{limit=\"x\"} 0;");
}

TEST(Metrics, BeginCreatesHistogramsBeforeTheirFirstEvent) {
  static constexpr std::array<contract::LabelValues, 1> kBorn = {contract::LabelValues{"most"}};
  constexpr MetricSpec times{"a_seconds", MetricType::Histogram,  "A.", {"overlap"},
                             kBounds,     contract::Combine::Sum, kBorn};
  Metrics metrics;
  metrics.begin(std::array{&times});
  EXPECT_NE(metrics.scrape().find("a_seconds_bucket{overlap=\"most\",le=\"+Inf\"} 0\n"),
            std::string::npos);
}

TEST(Metrics, LabelSetsAboveTheLimitShareACountedSeries) {
  Metrics metrics;
  for (std::size_t i = 0; i < kMetricSeriesMax + 10; ++i) {
    metrics.counter(kSeen, {"w0", std::to_string(i)}).add();
  }
  metrics.counter(kSeen, {"w0", "0"}).add();
  const std::string text = metrics.scrape();
  EXPECT_NE(text.find("{worker=\"other\",kind=\"other\"} 10\n"), std::string::npos);
  EXPECT_NE(text.find("sightline_metric_overflow_total{metric=\"sightline_test_seen_total\"} 10\n"),
            std::string::npos);
  EXPECT_NE(text.find("{worker=\"w0\",kind=\"0\"} 2\n"), std::string::npos);
  EXPECT_EQ(text.find("kind=\"" + std::to_string(kMetricSeriesMax) + "\""), std::string::npos);
}

TEST(Metrics, GaugesAreRefreshedBeforeEachScrape) {
  Metrics metrics;
  const Gauge level = metrics.gauge(kLevel, {"w0"});
  int scrapes = 0;
  metrics.before_scrape([&] { level.set(++scrapes); });
  EXPECT_NE(metrics.scrape().find("} 1\n"), std::string::npos);
  EXPECT_NE(metrics.scrape().find("} 2\n"), std::string::npos);
}

TEST(Metrics, ConcurrentScrapesRefreshOneAfterTheOther) {
  Metrics metrics;
  const Gauge level = metrics.gauge(kLevel, {"w0"});
  std::atomic<int> inside = 0;
  std::atomic<int> overlaps = 0;
  int refreshes = 0;  // not atomic, as in any refresh
  metrics.before_scrape([&] {
    if (++inside > 1) ++overlaps;
    level.set(++refreshes);
    std::this_thread::yield();
    --inside;
  });
  std::vector<std::jthread> scrapers;
  for (int i = 0; i < 4; ++i) {
    scrapers.emplace_back([&metrics] {
      for (int j = 0; j < 100; ++j) EXPECT_FALSE(metrics.scrape().empty());
    });
  }
  scrapers.clear();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(refreshes, 400);
}

TEST(Metrics, CountingFromManyThreadsLosesNothing) {
  Metrics metrics;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&metrics] {
      const Counter seen = metrics.counter(kSeen, {"w0", "x"});
      const Histogram size = metrics.histogram(kSize);
      for (int j = 0; j < 10'000; ++j) {
        seen.add();
        size.observe(2);
      }
    });
  }
  threads.clear();
  const std::string text = metrics.scrape();
  EXPECT_NE(text.find("} 40000\n"), std::string::npos);
  EXPECT_NE(text.find("sightline_test_size_sum 80000\n"), std::string::npos);
}

TEST(MetricsDeathTest, AWrongTypeOrCountOfLabelsIsABug) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Metrics metrics;
  EXPECT_DEATH(metrics.gauge(kSeen, {"a", "b"}), "check failed");
  EXPECT_DEATH(metrics.counter(kSeen, {"a"}), "check failed");
}

}  // namespace
}  // namespace sightline::runtime
