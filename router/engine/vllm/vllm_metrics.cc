// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/number.h"

#include "router/engine/vllm/vllm_answers.h"

namespace sightline::vllm {

using family::kBlockSizeMax;
using family::kGpuBlocksMax;
using family::kRequestsMax;
using family::RankLoad;
using family::ServerLoad;

namespace {

using contract::kRanksMax;

// The metrics that are read.
enum class Metric { Running, Waiting, Usage, Generated, CacheConfig };

struct MetricName {
  std::string_view name;
  Metric metric;
};
constexpr std::string_view kPrefix = "vllm:";
constexpr std::array kMetricNames{
    MetricName{"num_requests_running", Metric::Running},
    MetricName{"num_requests_waiting", Metric::Waiting},
    MetricName{"kv_cache_usage_perc", Metric::Usage},
    MetricName{"generation_tokens_total", Metric::Generated},
    MetricName{"cache_config_info", Metric::CacheConfig},
};

// One line "name{label="value",...} number" of the Prometheus text format.
struct Sample {
  Metric metric = Metric::Running;
  std::string_view labels;  // between the braces
  double value = 0;
};

// Returns the end of the labels that start at `begin`: a brace outside of quotes.
std::size_t labels_end(std::string_view line, std::size_t begin) {
  bool is_quoted = false;
  for (std::size_t i = begin; i < line.size(); ++i) {
    if (is_quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == '}' && !is_quoted) {
      return i;
    }
  }
  return std::string_view::npos;
}

// Returns the metric whose name the line begins with. A busy vLLM sends a thousand lines, of which
// five are read. So names are compared before anything is parsed.
const MetricName* metric_of(std::string_view line) {
  if (!line.starts_with(kPrefix)) return nullptr;
  line.remove_prefix(kPrefix.size());
  for (const MetricName& known : kMetricNames) {
    if (!line.starts_with(known.name)) continue;
    const std::string_view rest = line.substr(known.name.size());
    if (rest.starts_with('{') || rest.starts_with(' ')) return &known;
  }
  return nullptr;
}

std::optional<Sample> sample_of(std::string_view line) {
  const MetricName* known = metric_of(line);
  if (known == nullptr) return std::nullopt;
  Sample sample{.metric = known->metric};
  std::size_t end = kPrefix.size() + known->name.size();
  if (line[end] == '{') {
    const std::size_t close = labels_end(line, end + 1);
    if (close == std::string_view::npos) return std::nullopt;
    sample.labels = line.substr(end + 1, close - end - 1);
    end = close + 1;
  }
  std::string_view number = line.substr(std::min(line.find_first_not_of(' ', end), line.size()));
  number = number.substr(0, number.find(' '));
  const char* stop = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), stop, sample.value);
  // The text format allows NaN and infinity, which are no counts.
  if (parsed.ec != std::errc{} || parsed.ptr != stop || !std::isfinite(sample.value)) {
    return std::nullopt;
  }
  return sample;
}

// Returns the value of a label with its escapes. The labels that are read have plain values.
std::string_view label_of(std::string_view labels, std::string_view name) {
  for (std::size_t i = 0; i < labels.size();) {
    const std::size_t equals = labels.find("=\"", i);
    if (equals == std::string_view::npos) return {};
    std::size_t close = equals + 2;
    while (close < labels.size() && labels[close] != '"') close += labels[close] == '\\' ? 2 : 1;
    if (close >= labels.size()) return {};
    if (labels.substr(i, equals - i) == name) return labels.substr(equals + 2, close - equals - 2);
    i = close + 1;
    while (i < labels.size() && (labels[i] == ',' || labels[i] == ' ')) ++i;
  }
  return {};
}

class LoadReader {
 public:
  void read(const Sample& sample) {
    if (sample.metric == Metric::Generated) {
      generated_ = std::min(generated_ + std::clamp(sample.value, 0.0, family::kGeneratedMax),
                            family::kGeneratedMax);
      return;
    }
    // Values come from a peer, so each has a limit before it is added.
    const double count = std::clamp(sample.value, 0.0, kRequestsMax);
    Sums& sums = rank_of(sample);
    switch (sample.metric) {
      case Metric::Running:
        sums.running += count;
        return;
      case Metric::Waiting:
        sums.waiting += count;
        return;
      case Metric::Usage:
        sums.kv_usage = std::max(sums.kv_usage, std::clamp(sample.value, 0.0, 1.0));
        return;
      case Metric::Generated:
        return;
      case Metric::CacheConfig: {
        const auto size = whole_number(label_of(sample.labels, "block_size"), kBlockSizeMax);
        // The limit keeps a hostile engine from growing the set. More than one size is a
        // contradiction already.
        if (block_sizes_.size() < kRanksMax) block_sizes_.insert(size.value_or(0));
        const auto blocks = whole_number(label_of(sample.labels, "num_gpu_blocks"), kGpuBlocksMax);
        sums.gpu_blocks = std::max(sums.gpu_blocks, blocks.value_or(0));
        return;
      }
    }
  }

  [[nodiscard]] Result<ServerLoad> result() const {
    if (ranks_.empty()) {
      return worker_error(ErrorCode::Corrupt, "/metrics: vLLM's load metrics are missing", false);
    }
    ServerLoad load;
    for (const auto& [number, sums] : ranks_) {
      const RankLoad rank{.number = number,
                          .running = bounded(sums.running),
                          .waiting = bounded(sums.waiting),
                          .kv_usage = sums.kv_usage,
                          .gpu_blocks = sums.gpu_blocks};
      load.running = bounded(load.running + sums.running);
      load.waiting = bounded(load.waiting + sums.waiting);
      load.kv_usage = std::max(load.kv_usage, rank.kv_usage);
      load.ranks.push_back(rank);
    }
    load.generated_tokens = generated_;
    if (block_sizes_.size() == 1) load.block_size = *block_sizes_.begin();
    return load;
  }

 private:
  struct Sums {
    double running = 0;
    double waiting = 0;
    double kv_usage = 0;
    std::uint32_t gpu_blocks = 0;
  };

  static std::uint32_t bounded(double count) {
    return static_cast<std::uint32_t>(std::min(count, kRequestsMax));
  }
  Sums& rank_of(const Sample& sample) {
    return ranks_[whole_number(label_of(sample.labels, "engine"), kRanksMax - 1).value_or(0)];
  }

  std::map<std::uint32_t, Sums> ranks_;  // by rank number
  double generated_ = 0;
  std::set<std::uint32_t> block_sizes_;
};

}  // namespace

Result<ServerLoad> parse_metrics(std::string_view text) {
  LoadReader reader;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto sample = sample_of(text.substr(0, end))) reader.read(*sample);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.result();
}

}  // namespace sightline::vllm
