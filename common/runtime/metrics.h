// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/contract/metric_spec.h"

namespace sightline::runtime {

// The most label sets of one metric. More would slow down scrapes and let a peer fill our memory.
inline constexpr std::size_t kMetricSeriesMax = 2000;

struct MetricCell;

// Handles of one series: get one once, keep it, copy it freely. All operations are lock-free and
// may run on any thread. A handle stays valid after its series was removed: then it counts, but no
// scrape shows it. A default-constructed handle does nothing.
class Counter {
 public:
  Counter() = default;
  // Ignores negative amounts.
  void add(double amount = 1) const;

 private:
  friend class Metrics;
  explicit Counter(std::shared_ptr<MetricCell> cell) : cell_(std::move(cell)) {}
  std::shared_ptr<MetricCell> cell_;
};

// A value that goes up and down.
class Gauge {
 public:
  Gauge() = default;
  void set(double value) const;
  void add(double amount) const;

 private:
  friend class Metrics;
  explicit Gauge(std::shared_ptr<MetricCell> cell) : cell_(std::move(cell)) {}
  std::shared_ptr<MetricCell> cell_;
};

// Counts values in the buckets of the metric's spec.
class Histogram {
 public:
  Histogram() = default;
  void observe(double value) const;

 private:
  friend class Metrics;
  explicit Histogram(std::shared_ptr<MetricCell> cell) : cell_(std::move(cell)) {}
  std::shared_ptr<MetricCell> cell_;
};

// All series of the process. A spec's address identifies it: a spec lives as long as the process,
// and each name has one spec. Label values are in the order of the spec's labels. A wrong number of
// values or a wrong type of metric is a bug and ends the process.
// Thread safety: all methods from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The series of these label values. The first call creates it. If the metric has kMetricSeriesMax
  // series, returns the series whose labels are all "other", and counts the overflow.
  Counter counter(const contract::MetricSpec& spec,
                  std::initializer_list<std::string_view> label_values = {});
  Gauge gauge(const contract::MetricSpec& spec,
              std::initializer_list<std::string_view> label_values = {});
  Histogram histogram(const contract::MetricSpec& spec,
                      std::initializer_list<std::string_view> label_values = {});

  // Creates, at 0, the series that must exist before their first event. Otherwise a rate would miss
  // the first event. begin() does it for metrics without a worker label, begin_worker() for one
  // worker.
  void begin(std::span<const contract::MetricSpec* const> specs);
  void begin_worker(std::span<const contract::MetricSpec* const> specs, std::string_view worker);
  // Removes all series whose "worker" label has this value.
  void remove_worker(std::string_view worker);
  // Removes the series of these label values, if it exists.
  void remove(const contract::MetricSpec& spec,
              std::initializer_list<std::string_view> label_values);

  // `refresh` runs before each scrape, on the scraping thread, to update series. Two never run at
  // the same time. It must not scrape.
  void before_scrape(std::function<void()> refresh);

  // All series in Prometheus text format 0.0.4, with the metrics in the order of their names.
  [[nodiscard]] std::string scrape() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::runtime
