// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// The definition of a metric: its row in the table of all metrics (metric_table.h).
namespace sightline::contract {

enum class MetricType { Counter, Gauge, Histogram };

// How to combine the values of several replicas: Sum if each counts its own part, Max if all report
// the same.
enum class Combine { Sum, Max };

// Label values in the order of the labels. An empty value means no label, or the worker's label.
using LabelValues = std::array<std::string_view, 3>;

struct MetricSpec {
  std::string_view name;
  MetricType type = MetricType::Counter;
  // One line.
  std::string_view help;
  // Empty ones are unused.
  LabelValues labels{};
  // Upper bounds, ascending, of histograms only.
  std::span<const double> buckets{};
  Combine combine = Combine::Sum;
  // Of counters and histograms: the series that exist at 0 before their first event. increase()
  // misses the first event of a series that starts at 1. Series without labels, or with the worker
  // as their only label, exist in any case.
  std::span<const LabelValues> born{};

  // How many labels the metric has.
  [[nodiscard]] constexpr std::size_t label_count() const {
    std::size_t count = 0;
    while (count < labels.size() && !labels[count].empty()) ++count;
    return count;
  }
};

// The label that names a worker. Series with this label are removed with the worker.
inline constexpr std::string_view kWorkerLabel = "worker";

// In seconds, from a whole answer of a small model to a prefill of several 100,000 tokens.
inline constexpr std::array kDurationBuckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                0.1,   0.25,   0.5,   1.0,  2.5,   5.0,
                                                10.0,  30.0,   60.0,  300.0};
// By how many tokens a prediction is wrong.
inline constexpr std::array kTokenErrorBuckets = {0.0,   16.0,   32.0,   64.0,    128.0,  256.0,
                                                  512.0, 1024.0, 4096.0, 16384.0, 65536.0};

constexpr std::string_view name_of(Combine combine) {
  return combine == Combine::Sum ? "sum" : "max";
}

constexpr std::string_view name_of(MetricType type) {
  if (type == MetricType::Counter) return "counter";
  return type == MetricType::Gauge ? "gauge" : "histogram";
}

}  // namespace sightline::contract
