// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// What a metric is: its row in the table of all (metric_table.h).
namespace sightline::contract {

enum class MetricType { Counter, Gauge, Histogram };

// How the values of several replicas make one: each counts what is its own, or all of them report
// the same.
enum class Combine { Sum, Max };

// In the order of the labels; empty: none, or that of the worker.
using LabelValues = std::array<std::string_view, 3>;

struct MetricSpec {
  std::string_view name;
  MetricType type = MetricType::Counter;
  std::string_view help;              // one line
  LabelValues labels{};               // empty ones unused
  std::span<const double> buckets{};  // upper bounds, ascending; histograms only
  Combine combine = Combine::Sum;
  // Of counters and histograms: series that are there, at 0, before the first event, as are those
  // without labels and those of a worker alone: increase() sees nothing of what is born at 1.
  std::span<const LabelValues> born{};

  [[nodiscard]] constexpr std::size_t label_count() const {
    std::size_t count = 0;
    while (count < labels.size() && !labels[count].empty()) ++count;
    return count;
  }
};

// Label that names a worker: series with it go away with the worker.
inline constexpr std::string_view kWorkerLabel = "worker";

// Seconds, from a whole answer of a small model to a prefill of several 100,000 tokens.
inline constexpr std::array kDurationBuckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                0.1,   0.25,   0.5,   1.0,  2.5,   5.0,
                                                10.0,  30.0,   60.0,  300.0};
// Tokens by which a prediction is off.
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
