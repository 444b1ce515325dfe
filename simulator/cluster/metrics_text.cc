// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/metrics_text.h"

#include <array>
#include <cstdio>

namespace sightline::cluster {
namespace {

using faults::FaultKind;

// One kind of each name.
constexpr std::array kFaultKindsShown{
    FaultKind::Drop,      FaultKind::Duplicate,     FaultKind::Reorder,        FaultKind::Delay,
    FaultKind::Restart,   FaultKind::Forget,        FaultKind::DieMidstream,   FaultKind::Stall,
    FaultKind::Status500, FaultKind::GarbageEvents, FaultKind::WrongBlockSize, FaultKind::CutReplay,
    FaultKind::SlowProbe};

std::string number(double value) {
  // prometheus_client writes every value as a Python float.
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  const std::string printed = text.data();
  return printed.find_first_of(".en") == std::string::npos ? printed + ".0" : printed;
}

std::string escaped_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    // A newline would end the line of the sample.
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// The text of a page in which every metric has one sample per rank.
class Page {
 public:
  explicit Page(const MetricsSource& source)
      : source_(source), model_(escaped_label(source.model_name)) {}

  struct Metric {
    std::string_view name;
    std::string_view help;
  };

  // `value` returns the value of a RankSource.
  template <class Value>
  void counter(const Metric& metric, Value value) {
    open(metric, "counter");
    sample(value);
  }
  template <class Value>
  void gauge(const Metric& metric, Value value) {
    open(metric, "gauge");
    sample(value);
  }
  void open(const Metric& metric, std::string_view type) {
    name_ = metric.name;
    text_ += "# HELP " + name_ + " " + std::string(metric.help) + "\n# TYPE " + name_ + " " +
             std::string(type) + "\n";
  }
  // Labels are in alphabetical order, as prometheus_client writes them: some before and some after
  // model_name.
  template <class Value>
  void sample(Value value, std::string_view before = {}, std::string_view after = {}) {
    for (rank_ = 0; rank_ < source_.ranks.size(); ++rank_) {
      line("", static_cast<double>(value(source_.ranks[rank_])), before, after);
    }
  }
  // Writes one sample for all ranks, with the label of the first rank.
  void of_all(double value, std::string_view before) {
    rank_ = 0;
    line("", value, before, {});
  }
  // `histogram` returns a histogram of an Engine.
  template <class Histogram>
  void histogram(const Metric& metric, Histogram histogram) {
    open(metric, "histogram");
    for (rank_ = 0; rank_ < source_.ranks.size(); ++rank_) {
      buckets(histogram(*source_.ranks[rank_].engine));
    }
  }
  void text(std::string_view text) { text_ += text; }
  std::string take() { return std::move(text_); }

 private:
  void buckets(const LatencyHistogram& values) {
    for (std::size_t i = 0; i < LatencyHistogram::kBounds.size(); ++i) {
      const std::string bound = "le=\"" + number(LatencyHistogram::kBounds[i]) + "\",";
      line("_bucket", static_cast<double>(values.at_most[i]), bound, {});
    }
    line("_bucket", static_cast<double>(values.count), "le=\"+Inf\",", {});
    line("_count", static_cast<double>(values.count), {}, {});
    line("_sum", values.sum_s, {}, {});
  }
  void line(std::string_view suffix, double value, std::string_view before,
            std::string_view after) {
    text_.append(name_).append(suffix).append("{engine=\"").append(std::to_string(rank_));
    text_.append("\",").append(before);
    text_.append("model_name=\"").append(model_).append("\"").append(after).append("} ");
    text_.append(number(value)).append("\n");
  }

  const MetricsSource& source_;
  const std::string model_;
  std::size_t rank_ = 0;  // the rank of the present samples
  std::string name_;
  std::string text_;
};

const core::PrefixCache& cache_of(const RankSource& rank) {
  return rank.engine->scheduler().cache();
}

// The only entry whose labels are the configuration. It has no label model_name.
std::string cache_config(const core::PrefixCache& cache, std::size_t rank) {
  const std::string size = std::to_string(cache.block_size());
  // vLLM also counts its null block.
  const std::size_t blocks = cache.blocks_usable() + 1;
  return "vllm:cache_config_info{block_size=\"" + size +
         "\",cache_dtype=\"auto\",effective_attention_block_size=\"" + size +
         "\",enable_prefix_caching=\"True\",engine=\"" + std::to_string(rank) +
         "\",kv_cache_size_tokens=\"" + std::to_string(blocks * cache.block_size()) +
         "\",num_gpu_blocks=\"" + std::to_string(blocks) +
         "\",prefix_caching_hash_algo=\"sha256\",sliding_window=\"None\"} 1.0\n";
}

void add_load(Page& page, const MetricsSource& source) {
  const auto running = [](const RankSource& r) { return r.engine->scheduler().running(); };
  const auto waiting = [](const RankSource& r) { return r.engine->scheduler().waiting(); };
  const auto usage = [](const RankSource& r) {
    const auto usable = static_cast<double>(cache_of(r).blocks_usable());
    return (usable - static_cast<double>(cache_of(r).blocks_free())) / usable;
  };
  page.gauge({"vllm:num_requests_running", "Number of requests in model execution batches."},
             running);
  page.gauge({"vllm:num_requests_waiting", "Number of requests waiting to be processed."}, waiting);
  page.open({"vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason."},
            "gauge");
  page.sample(waiting, {}, ",reason=\"capacity\"");
  // The simulation defers no request.
  page.sample([](const RankSource&) { return 0; }, {}, ",reason=\"deferred\"");
  page.gauge({"vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage."}, usage);
  page.open({"vllm:cache_config_info", "Information of the LLMEngine CacheConfig"}, "gauge");
  for (std::size_t rank = 0; rank < source.ranks.size(); ++rank) {
    page.text(cache_config(cache_of(source.ranks[rank]), rank));
  }
}

// Returns a function for a counter of the scheduler.
auto of(std::uint64_t core::SchedulerCounters::*member) {
  return [member](const RankSource& r) { return r.engine->scheduler().counters().*member; };
}

void add_counters(Page& page) {
  using Counters = core::SchedulerCounters;
  page.counter({"vllm:prefix_cache_queries_total",
                "Prefix cache queries, in terms of number of queried tokens."},
               of(&Counters::prompt_tokens));
  page.counter(
      {"vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens."},
      of(&Counters::cached_tokens));
  page.counter({"vllm:mm_cache_queries_total",
                "Multi-modal cache queries, in terms of number of queried items."},
               [](const RankSource& r) { return r.media_queries; });
  page.counter(
      {"vllm:mm_cache_hits_total", "Multi-modal cache hits, in terms of number of cached items."},
      [](const RankSource& r) { return r.media_hits; });
  page.counter({"vllm:num_preemptions_total", "Cumulative number of preemption from the engine."},
               of(&Counters::preempted));
  page.counter({"vllm:prompt_tokens_total", "Number of prefill tokens processed."},
               of(&Counters::prompt_tokens));
  page.counter({"vllm:prompt_tokens_cached_total", "Number of cached prompt tokens."},
               of(&Counters::cached_tokens));
  page.counter({"vllm:generation_tokens_total", "Number of generation tokens processed."},
               of(&Counters::generated_tokens));
  page.open({"vllm:request_success_total", "Count of successfully processed requests."}, "counter");
  // A simulated answer always ends by its length.
  const auto none = [](const RankSource&) { return 0; };
  page.sample(none, "finished_reason=\"stop\",");
  page.sample(of(&Counters::finished), "finished_reason=\"length\",");
  page.sample(of(&Counters::aborted), "finished_reason=\"abort\",");
  page.sample(none, "finished_reason=\"error\",");
}

void add_simulation(Page& page, const faults::FaultPlan& faults) {
  using Counters = core::SchedulerCounters;
  page.counter({"sl_sim_requests_total", "Chat and completion requests accepted."},
               [](const RankSource& r) { return r.requests_accepted; });
  page.counter(
      {"sl_sim_prefill_tokens_computed_total", "Prompt tokens that were computed, not cached."},
      of(&Counters::prefill_tokens));
  page.counter(
      {"sl_sim_encoder_tokens_computed_total", "Media tokens that were encoded, not cached."},
      of(&Counters::encoder_tokens));
  page.counter({"sl_sim_requests_aborted_total", "Samples whose client disconnected."},
               of(&Counters::aborted));
  page.open({"sl_sim_faults_total", "Injected faults that struck, by kind."}, "counter");
  for (const auto kind : kFaultKindsShown) {
    const std::string name(faults::name_of(kind));
    page.of_all(static_cast<double>(faults.struck(name)), "kind=\"" + name + "\",");
  }
}

}  // namespace

std::string metrics_text(const MetricsSource& source) {
  Page page(source);
  add_load(page, source);
  add_counters(page);
  page.histogram(
      {"vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds."},
      [](const Engine& engine) { return engine.first_token(); });
  page.histogram(
      {"vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds."},
      [](const Engine& engine) { return engine.whole_request(); });
  add_simulation(page, *source.faults);
  return page.take();
}

}  // namespace sightline::cluster
