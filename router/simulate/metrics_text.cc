// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/simulate/metrics_text.h"

#include <array>
#include <cstdio>

namespace sightline::simulate {
namespace {

using simfault::FaultKind;

// One of each name.
constexpr std::array kFaultKindsShown{
    FaultKind::Drop,          FaultKind::Duplicate,     FaultKind::Reorder, FaultKind::Delay,
    FaultKind::Restart,       FaultKind::DieMidstream,  FaultKind::Stall,   FaultKind::Status500,
    FaultKind::GarbageEvents, FaultKind::WrongBlockSize};

std::string number(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  const std::string printed = text.data();
  return printed.find_first_of(".en") == std::string::npos ? printed + ".0" : printed;
}

std::string escaped_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

class Page {
 public:
  explicit Page(std::string_view model) : model_(escaped_label(model)) {}

  struct Metric {
    std::string_view name;
    std::string_view type;
    std::string_view help;
  };

  void open(const Metric& metric) {
    name_ = metric.name;
    text_ += "# HELP " + name_ + " " + std::string(metric.help) + "\n# TYPE " + name_ + " " +
             std::string(metric.type) + "\n";
  }
  // Labels in alphabetical order, as prometheus_client writes them: before and after model_name.
  void sample(double value, std::string_view before = {}, std::string_view after = {}) {
    line("", value, before, after);
  }
  void single(const Metric& metric, double value) {
    open(metric);
    sample(value);
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    single({name, "counter", help}, static_cast<double>(value));
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    single({name, "gauge", help}, value);
  }
  void histogram(std::string_view name, std::string_view help, const LatencyHistogram& values) {
    open({name, "histogram", help});
    for (std::size_t i = 0; i < LatencyHistogram::kBounds.size(); ++i) {
      const std::string bound = "le=\"" + number(LatencyHistogram::kBounds[i]) + "\",";
      line("_bucket", static_cast<double>(values.at_most[i]), bound, {});
    }
    line("_bucket", static_cast<double>(values.count), "le=\"+Inf\",", {});
    line("_count", static_cast<double>(values.count), {}, {});
    line("_sum", values.sum_s, {}, {});
  }
  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, double value, std::string_view before,
            std::string_view after) {
    text_.append(name_).append(suffix).append("{engine=\"0\",").append(before);
    text_.append("model_name=\"").append(model_).append("\"").append(after).append("} ");
    text_.append(number(value)).append("\n");
  }

  const std::string model_;
  std::string name_;
  std::string text_;
};

void add_load(Page& page, const simengine::Scheduler& scheduler) {
  const auto running = static_cast<double>(scheduler.running());
  const auto waiting = static_cast<double>(scheduler.waiting());
  page.gauge("vllm:num_requests_running", "Number of requests in model execution batches.",
             running);
  page.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", waiting);
  page.open(
      {"vllm:num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason."});
  page.sample(waiting, {}, ",reason=\"capacity\"");
  page.sample(0, {}, ",reason=\"deferred\"");
  const simengine::PrefixCache& cache = scheduler.cache();
  const auto usable = static_cast<double>(cache.blocks_usable());
  page.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.",
             (usable - static_cast<double>(cache.blocks_free())) / usable);
  page.open({"vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig"});
}

// The one page entry whose labels are the configuration; model_name is not among them.
std::string cache_config(const simengine::PrefixCache& cache) {
  const std::string size = std::to_string(cache.block_size());
  const std::size_t blocks = cache.blocks_usable() + 1;
  return "vllm:cache_config_info{block_size=\"" + size +
         "\",cache_dtype=\"auto\",effective_attention_block_size=\"" + size +
         "\",enable_prefix_caching=\"True\",engine=\"0\",kv_cache_size_tokens=\"" +
         std::to_string(blocks * cache.block_size()) + "\",num_gpu_blocks=\"" +
         std::to_string(blocks) +
         "\",prefix_caching_hash_algo=\"sha256\",sliding_window=\"None\"} 1.0\n";
}

void add_counters(Page& page, const MetricsSource& source,
                  const simengine::SchedulerCounters& counters) {
  page.counter("vllm:prefix_cache_queries_total",
               "Prefix cache queries, in terms of number of queried tokens.",
               counters.prompt_tokens);
  page.counter("vllm:prefix_cache_hits_total",
               "Prefix cache hits, in terms of number of cached tokens.", counters.cached_tokens);
  page.counter("vllm:mm_cache_queries_total",
               "Multi-modal cache queries, in terms of number of queried items.",
               source.processor_cache->queries);
  page.counter("vllm:mm_cache_hits_total",
               "Multi-modal cache hits, in terms of number of cached items.",
               source.processor_cache->hits);
  page.counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.",
               counters.preempted);
  page.counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.",
               counters.prompt_tokens);
  page.counter("vllm:prompt_tokens_cached_total", "Number of cached prompt tokens.",
               counters.cached_tokens);
  page.counter("vllm:generation_tokens_total", "Number of generation tokens processed.",
               counters.generated_tokens);
  page.open({"vllm:request_success_total", "counter", "Count of successfully processed requests."});
  const auto reason = [&page](std::string_view name, std::uint64_t value) {
    page.sample(static_cast<double>(value), "finished_reason=\"" + std::string(name) + "\",");
  };
  reason("stop", 0);
  reason("length", counters.finished);
  reason("abort", counters.aborted);
  reason("error", 0);
}

void add_simulation(Page& page, const MetricsSource& source,
                    const simengine::SchedulerCounters& counters) {
  page.counter("sl_sim_requests_total", "Chat and completion requests accepted.",
               source.requests_accepted);
  page.counter("sl_sim_prefill_tokens_computed_total", "Prompt tokens computed, not found.",
               counters.prefill_tokens);
  page.counter("sl_sim_encoder_tokens_computed_total", "Media tokens encoded, not remembered.",
               counters.encoder_tokens);
  page.counter("sl_sim_requests_aborted_total", "Samples whose client left.", counters.aborted);
  page.open({"sl_sim_faults_total", "counter", "Injected faults that struck, by kind."});
  for (const auto kind : kFaultKindsShown) {
    const std::string name(simfault::name_of(kind));
    page.sample(static_cast<double>(source.faults->struck(name)), "kind=\"" + name + "\",");
  }
}

}  // namespace

std::string metrics_text(const MetricsSource& source) {
  const simengine::Scheduler& scheduler = source.engine->scheduler();
  Page load(source.model_name);
  add_load(load, scheduler);
  Page rest(source.model_name);
  add_counters(rest, source, scheduler.counters());
  rest.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.",
                 source.engine->first_token());
  rest.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
                 source.engine->whole_request());
  add_simulation(rest, source, scheduler.counters());
  return load.take() + cache_config(scheduler.cache()) + rest.take();
}

}  // namespace sightline::simulate
