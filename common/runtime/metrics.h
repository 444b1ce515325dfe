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

// Label sets per metric. More would make scrapes slow and let a peer fill our memory.
inline constexpr std::size_t kMetricSeriesMax = 2000;

struct MetricCell;

// Handles to one series: resolve once, keep, copy freely. All operations are lock-free and may
// run on any thread. A handle stays valid after its series was removed; it counts unseen then.
class Counter {
 public:
  Counter() = default;
  void add(double amount = 1) const;  // amount >= 0

 private:
  friend class Metrics;
  explicit Counter(std::shared_ptr<MetricCell> cell) : cell_(std::move(cell)) {}
  std::shared_ptr<MetricCell> cell_;
};

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

class Histogram {
 public:
  Histogram() = default;
  void observe(double value) const;

 private:
  friend class Metrics;
  explicit Histogram(std::shared_ptr<MetricCell> cell) : cell_(std::move(cell)) {}
  std::shared_ptr<MetricCell> cell_;
};

// All series of the process. A spec is known by its address: it lives as long as the process, and
// there is one for a name. Label values are given in the order of its labels; a wrong count or the
// wrong type of metric is a bug and stops the process.
// Thread safety: all methods from any thread.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The series of these label values, made at first use. Beyond kMetricSeriesMax the series whose
  // labels are all "other" is given, and the overflow is counted.
  Counter counter(const contract::MetricSpec& spec,
                  std::initializer_list<std::string_view> label_values = {});
  Gauge gauge(const contract::MetricSpec& spec,
              std::initializer_list<std::string_view> label_values = {});
  Histogram histogram(const contract::MetricSpec& spec,
                      std::initializer_list<std::string_view> label_values = {});

  // Makes the series of these metrics that are to be there before the first event, at 0: of all
  // that have no worker label, or of one worker.
  void begin(std::span<const contract::MetricSpec* const> specs);
  void begin_worker(std::span<const contract::MetricSpec* const> specs, std::string_view worker);
  // Removes every series whose "worker" label has this value.
  void remove_worker(std::string_view worker);
  // Removes the series of these label values, if there is one.
  void remove(const contract::MetricSpec& spec,
              std::initializer_list<std::string_view> label_values);

  // Runs before each scrape, on the scraping thread, to bring series up to date; never two at the
  // same time. It must not scrape.
  void before_scrape(std::function<void()> refresh);

  // Prometheus text format 0.0.4 of all series, families by name.
  [[nodiscard]] std::string scrape() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::runtime
