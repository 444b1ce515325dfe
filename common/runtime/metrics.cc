// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/metrics.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/contract/metrics_process.h"

namespace sightline::runtime {

using contract::MetricSpec;
using contract::MetricType;

// prometheus-cpp deletes its metrics together with their series, while other threads still count in
// them. These cells are shared, and only the text format comes from the library.
struct MetricCell {
  explicit MetricCell(const MetricSpec& metric)
      : bounds(metric.buckets), bucket_counts(metric.buckets.size() + 1) {}

  std::atomic<double> value = 0;  // of a histogram: the sum
  const std::span<const double> bounds;
  std::vector<std::atomic<std::uint64_t>> bucket_counts;  // not cumulative. The last one is +Inf
};

void Counter::add(double amount) const {
  if (cell_ && amount > 0) cell_->value.fetch_add(amount, std::memory_order_relaxed);
}

void Gauge::set(double value) const {
  if (cell_) cell_->value.store(value, std::memory_order_relaxed);
}

void Gauge::add(double amount) const {
  if (cell_) cell_->value.fetch_add(amount, std::memory_order_relaxed);
}

void Histogram::observe(double value) const {
  if (!cell_) return;
  const auto bucket = std::lower_bound(cell_->bounds.begin(), cell_->bounds.end(), value);
  const auto index = static_cast<std::size_t>(bucket - cell_->bounds.begin());
  cell_->bucket_counts[index].fetch_add(1, std::memory_order_relaxed);
  cell_->value.fetch_add(value, std::memory_order_relaxed);
}

namespace {

using Labels = std::vector<std::string>;

// Compares label values without copying them, because each request looks up about a dozen series.
struct LabelsLess {
  using is_transparent = void;

  bool operator()(const auto& a, const auto& b) const {
    return std::ranges::lexicographical_compare(
        a, b, [](std::string_view x, std::string_view y) { return x < y; });
  }
};

// The index of the label that names a worker.
std::optional<std::size_t> worker_label_of(const MetricSpec& spec) {
  const auto label = std::find(spec.labels.begin(), spec.labels.end(), contract::kWorkerLabel);
  if (label == spec.labels.end()) return std::nullopt;
  return static_cast<std::size_t>(label - spec.labels.begin());
}

using Family = std::map<Labels, std::shared_ptr<MetricCell>, LabelsLess>;

prometheus::MetricType type_of(MetricType type) {
  if (type == MetricType::Counter) return prometheus::MetricType::Counter;
  return type == MetricType::Gauge ? prometheus::MetricType::Gauge
                                   : prometheus::MetricType::Histogram;
}

prometheus::ClientMetric::Histogram histogram_of(const MetricCell& cell) {
  prometheus::ClientMetric::Histogram histogram;
  // The text format wants cumulative buckets. One pass over the cells gives buckets and count that
  // agree, even while other threads count.
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < cell.bucket_counts.size(); ++i) {
    count += cell.bucket_counts[i].load(std::memory_order_relaxed);
    const double bound =
        i < cell.bounds.size() ? cell.bounds[i] : std::numeric_limits<double>::infinity();
    histogram.bucket.push_back({count, bound});
  }
  histogram.sample_count = count;
  histogram.sample_sum = cell.value.load(std::memory_order_relaxed);
  return histogram;
}

prometheus::ClientMetric metric_of(const MetricSpec& spec, const Labels& labels,
                                   const MetricCell& cell) {
  prometheus::ClientMetric metric;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    metric.label.push_back({std::string(spec.labels.at(i)), labels[i]});
  }
  const double value = cell.value.load(std::memory_order_relaxed);
  switch (spec.type) {
    case MetricType::Counter:
      metric.counter.value = value;
      break;
    case MetricType::Gauge:
      metric.gauge.value = value;
      break;
    case MetricType::Histogram:
      metric.histogram = histogram_of(cell);
      break;
  }
  return metric;
}

prometheus::MetricFamily family_of(const MetricSpec& spec, const Family& family) {
  prometheus::MetricFamily text{
      std::string(spec.name), std::string(spec.help), type_of(spec.type), {}};
  for (const auto& [labels, cell] : family) {
    text.metric.push_back(metric_of(spec, labels, *cell));
  }
  return text;
}

}  // namespace

struct Metrics::State {
  Mutex mutex;
  // Keyed by address, because each request looks up about a dozen. Holds the families, not cells.
  std::unordered_map<const MetricSpec*, Family> families SL_GUARDED_BY(mutex);
  std::vector<std::function<void()>> refreshes SL_GUARDED_BY(mutex);
  Mutex refreshing;  // held while they run, so scrapes do not overlap

  struct SeriesCell {
    std::shared_ptr<MetricCell> cell;
    bool is_overflow = false;
  };

  SeriesCell find_or_make(const MetricSpec& spec, MetricType type,
                          std::span<const std::string_view> label_values) {
    SL_CHECK(spec.type == type);
    SL_CHECK(spec.label_count() == label_values.size());
    const MutexLock lock(mutex);
    Family& family = families[&spec];
    auto found = family.find(label_values);
    if (found != family.end()) return {found->second};
    // Labels may come from a peer, so a peer could otherwise create series without limit.
    const bool is_overflow = family.size() >= kMetricSeriesMax;
    Labels labels(label_values.begin(), label_values.end());
    if (is_overflow) {
      labels.assign(labels.size(), "other");
      found = family.find(labels);
    }
    if (found == family.end()) {
      found = family.emplace(std::move(labels), std::make_shared<MetricCell>(spec)).first;
    }
    return {found->second, is_overflow};
  }

  void begin(const MetricSpec& spec, std::optional<std::size_t> worker_label,
             std::string_view worker) {
    // A gauge at 0 would state a value. A counter at 0 states that nothing has happened.
    if (spec.type == MetricType::Gauge) return;
    const std::size_t known = worker_label ? 1 : 0;
    if (spec.label_count() == known) begin_one(spec, {}, worker_label, worker);
    for (const contract::LabelValues& values : spec.born) {
      begin_one(spec, values, worker_label, worker);
    }
  }

  void begin_one(const MetricSpec& spec, contract::LabelValues values,
                 std::optional<std::size_t> worker_label, std::string_view worker) {
    if (worker_label) values.at(*worker_label) = worker;
    cell(spec, spec.type, std::span(values).first(spec.label_count()));
  }

  std::shared_ptr<MetricCell> cell(const MetricSpec& spec, MetricType type,
                                   std::span<const std::string_view> label_values) {
    // The overflow counter is looked up after the lock is free, because Mutex is not recursive.
    SeriesCell found = find_or_make(spec, type, label_values);
    if (found.is_overflow) {
      const MetricSpec& overflow = contract::kMetricOverflowTotal;
      const SeriesCell counter =
          find_or_make(overflow, MetricType::Counter, std::span(&spec.name, 1));
      counter.cell->value.fetch_add(1, std::memory_order_relaxed);
    }
    return std::move(found.cell);
  }
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter Metrics::counter(const MetricSpec& spec,
                         std::initializer_list<std::string_view> label_values) {
  return Counter(state_->cell(spec, MetricType::Counter,
                              std::span(label_values.begin(), label_values.size())));
}

Gauge Metrics::gauge(const MetricSpec& spec, std::initializer_list<std::string_view> label_values) {
  return Gauge(
      state_->cell(spec, MetricType::Gauge, std::span(label_values.begin(), label_values.size())));
}

Histogram Metrics::histogram(const MetricSpec& spec,
                             std::initializer_list<std::string_view> label_values) {
  return Histogram(state_->cell(spec, MetricType::Histogram,
                                std::span(label_values.begin(), label_values.size())));
}

void Metrics::begin(std::span<const MetricSpec* const> specs) {
  for (const MetricSpec* spec : specs) {
    if (!worker_label_of(*spec)) state_->begin(*spec, {}, {});
  }
}

void Metrics::begin_worker(std::span<const MetricSpec* const> specs, std::string_view worker) {
  for (const MetricSpec* spec : specs) {
    if (const auto label = worker_label_of(*spec)) state_->begin(*spec, label, worker);
  }
}

void Metrics::remove_worker(std::string_view worker) {
  const MutexLock lock(state_->mutex);
  for (auto& [spec, family] : state_->families) {
    const auto label = worker_label_of(*spec);
    if (!label) continue;
    const std::size_t index = *label;
    std::erase_if(family, [&](const auto& series) { return series.first.at(index) == worker; });
  }
}

void Metrics::remove(const MetricSpec& spec, std::initializer_list<std::string_view> label_values) {
  const MutexLock lock(state_->mutex);
  const auto family = state_->families.find(&spec);
  if (family == state_->families.end()) return;
  family->second.erase(Labels(label_values.begin(), label_values.end()));
}

void Metrics::before_scrape(std::function<void()> refresh) {
  const MutexLock lock(state_->mutex);
  state_->refreshes.push_back(std::move(refresh));
}

std::string Metrics::scrape() const {
  // A copy, because refreshes themselves look up series, which locks `mutex`.
  std::vector<std::function<void()>> refreshes;
  {
    const MutexLock lock(state_->mutex);
    refreshes = state_->refreshes;
  }
  {
    const MutexLock lock(state_->refreshing);
    for (const auto& refresh : refreshes) refresh();
  }
  std::vector<prometheus::MetricFamily> families;
  {
    const MutexLock lock(state_->mutex);
    for (const auto& [spec, family] : state_->families) {
      if (!family.empty()) families.push_back(family_of(*spec, family));
    }
  }
  // The map is not ordered, and readers compare scrapes.
  std::ranges::sort(families, {}, &prometheus::MetricFamily::name);
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

}  // namespace sightline::runtime
