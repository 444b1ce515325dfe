// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/settings.h"

#include <array>

#include "simulator/core/event_encoder.h"
#include "simulator/faults/fault.h"

namespace sightline::cluster {
namespace {

using contract::SettingTable;

void add_places(SettingTable& table, SimulateSettings& s) {
  table.add_integer<std::uint32_t>({"simulate.engines", "engines", "N", "Engines to simulate."},
                                   s.engines, {1, kEnginesMax});
  table.add_integer<std::uint32_t>(
      {"simulate.data_parallel_size", "data-parallel-size", "N",
       "Data-parallel ranks of each engine. Each has its own cache and events, behind one URL."},
      s.data_parallel_size, {1, kRanksMax});
  table.add_text({"simulate.host", "host", "ADDRESS", "Address that all ports listen on."}, s.host);
  table.add_integer<std::uint16_t>(
      {"simulate.base_port", "base-port", "PORT",
       "HTTP port of engine 0. Engine i takes base+i. 0: any free port."},
      s.base_port, {0, kPortMax});
  table.add_integer<std::uint16_t>(
      {"simulate.events_base_port", "events-base-port", "PORT",
       "KV event port of engine 0. With N ranks, rank r of engine i takes base+i*N+r."},
      s.events_base_port, {0, kPortMax});
  table.add_integer<std::uint16_t>(
      {"simulate.replay_base_port", "replay-base-port", "PORT",
       "Replay port of engine 0. With N ranks, rank r of engine i takes base+i*N+r."},
      s.replay_base_port, {0, kPortMax});
  table.add_integer<std::uint32_t>(
      {"simulate.threads", "threads", "N", "Threads that the engines share."}, s.threads,
      {1, kThreadsMax});
}

void add_model(SettingTable& table, SimulateSettings& s) {
  table.add_text({"simulate.model_path", "model-path", "DIR", "Hugging Face model directory."},
                 s.model_path);
  table.add_text({"simulate.served_model_name", "served-model-name", "NAME",
                  "Model name in requests and answers. Empty: the model path."},
                 s.served_model_name);
  table.add_integer<std::uint32_t>({"simulate.max_model_len", "max-model-len", "TOKENS",
                                    "Longest prompt plus answer. 0: the value in config.json."},
                                   s.max_model_len, {0, kTokensMax});
  table.add_text_list({"simulate.lora_module", "lora-module", "NAME",
                       "LoRA adapter that requests may name as model."},
                      s.lora_modules);
  table.add_integer<std::uint32_t>(
      {"simulate.block_size", "block-size", "TOKENS", "Tokens of a cache block."}, s.block_size,
      {1, kBlockTokensMax});
  table.add_integer<std::uint32_t>(
      {"simulate.blocks", "blocks", "N", "Cache blocks of each engine."}, s.blocks,
      {2, kBlocksMax});
  table.add_switch({"simulate.drop_last_hit", "drop-last-hit", "",
                    "The last block of each cache hit is computed again, as vLLM does "
                    "with EAGLE or MTP."},
                   s.drop_last_hit);
  table.add_integer<std::uint32_t>({"simulate.window_blocks", "window-blocks", "N",
                                    "For a hybrid model: blocks of the sliding window of a second "
                                    "cache group. 0: no second group."},
                                   s.window_blocks, {0, kBlocksMax});
  table.add_number({"simulate.mm_processor_cache_gb", "mm-processor-cache-gb", "GIB",
                    "Memory for processed media, cached by uuid. 0: no cache."},
                   s.mm_processor_cache_gb, {0, kCacheGibMax});
}

void add_speed(SettingTable& table, SimulateSettings& s) {
  table.add_number({"simulate.prefill_tokens_per_s", "prefill-tokens-per-s", "RATE",
                    "Prompt tokens per second of an engine. 0: instant."},
                   s.prefill_tokens_per_s, {0, kRateMax});
  table.add_number({"simulate.encoder_tokens_per_s", "encoder-tokens-per-s", "RATE",
                    "Media tokens per second of an engine, in addition to prefill. 0: instant."},
                   s.encoder_tokens_per_s, {0, kRateMax});
  table.add_number({"simulate.decode_tokens_per_s", "decode-tokens-per-s", "RATE",
                    "Output tokens per second of each request. 0: instant."},
                   s.decode_tokens_per_s, {0, kRateMax});
  table.add_integer<std::uint32_t>({"simulate.max_running", "max-running", "N",
                                    "Requests that an engine computes at the same time."},
                                   s.max_running, {1, kRunningMax});
  table.add_integer<std::uint32_t>({"simulate.max_batched_tokens", "max-batched-tokens", "TOKENS",
                                    "Prompt and output tokens of one step."},
                                   s.max_batched_tokens, {1, kTokensMax});
  table.add_integer<std::uint32_t>({"simulate.output_tokens_default", "output-tokens-default",
                                    "TOKENS", "Answer length of a request that sets no length."},
                                   s.output_tokens_default, {1, kTokensMax});
  table.add_switch(
      {"simulate.instant", "instant", "",
       "A fixed answer without model, cache, events or timers, to measure the cost of a proxy."},
      s.instant);
}

void add_events(SettingTable& table, SimulateSettings& s) {
  table.add_text({"simulate.event_encoding", "event-encoding", "VERSION",
                  "vLLM release whose event encoding is used: v0.11 to v0.32."},
                 s.event_encoding);
  table.add_choice({"simulate.event_hashes", "event-hashes", "KIND",
                    "Block hashes in events: 64-bit integers or bytes."},
                   s.event_hashes, {"int", "bytes"});
  table.add_switch({"simulate.no_replay", "no-replay", "",
                    "Engines have no replay socket, as in vLLM by default."},
                   s.no_replay);
}

void add_faults(SettingTable& table, SimulateSettings& s) {
  table.add_text_list(
      {"simulate.fault", "fault", "FIELDS",
       "Fault to inject. Repeatable. kind=NAME (drop, duplicate, reorder, delay, restart, forget, "
       "die-midstream, stall, status500, garbage, wrong-block-size, cut-replay, slow-probe)"
       "[,p=0.05][,engine=1][,count=N][,ms=N][,after=N][,lost=true][,request=PREFIX]"
       "[,target=http]."},
      s.faults);
  table.add_integer<std::uint32_t>(
      {"simulate.fault_seed", "fault-seed", "N", "Seed of the faults' random draws."}, s.fault_seed,
      {0, UINT32_MAX});
}

Error invalid(const std::string& message) {
  return client_error(ErrorCode::InvalidArgument, message);
}

struct FlagRange {
  const char* flag;
  double value;
  double min;
  double max;
};

Result<Done> check_ranges(const SimulateSettings& s) {
  // The table checks these ranges for flags. SimulatedCluster::start() also takes settings from
  // tests.
  for (const FlagRange& range : {
           FlagRange{"--engines", double(s.engines), 1, kEnginesMax},
           FlagRange{"--data-parallel-size", double(s.data_parallel_size), 1, kRanksMax},
           FlagRange{"--threads", double(s.threads), 1, kThreadsMax},
           FlagRange{"--block-size", double(s.block_size), 1, kBlockTokensMax},
           FlagRange{"--blocks", double(s.blocks), 2, kBlocksMax},
           FlagRange{"--window-blocks", double(s.window_blocks), 0, kBlocksMax},
           FlagRange{"--mm-processor-cache-gb", s.mm_processor_cache_gb, 0, kCacheGibMax},
           FlagRange{"--prefill-tokens-per-s", s.prefill_tokens_per_s, 0, kRateMax},
           FlagRange{"--encoder-tokens-per-s", s.encoder_tokens_per_s, 0, kRateMax},
           FlagRange{"--decode-tokens-per-s", s.decode_tokens_per_s, 0, kRateMax},
           FlagRange{"--max-running", double(s.max_running), 1, kRunningMax},
           FlagRange{"--max-batched-tokens", double(s.max_batched_tokens), 1, kTokensMax},
           FlagRange{"--output-tokens-default", double(s.output_tokens_default), 1, kTokensMax},
       }) {
    if (range.value >= range.min && range.value <= range.max) continue;
    return invalid(std::string(range.flag) + " must be within " +
                   std::to_string(static_cast<std::uint64_t>(range.min)) + " … " +
                   std::to_string(static_cast<std::uint64_t>(range.max)));
  }
  return Done{};
}

struct PortRange {
  std::string flag;
  std::uint32_t base;
  std::uint32_t size;
};

Result<Done> check_ports(const SimulateSettings& s) {
  const std::uint32_t cores = s.engines * s.data_parallel_size;
  const std::array ranges{PortRange{"--base-port", s.base_port, s.engines},
                          PortRange{"--events-base-port", s.events_base_port, cores},
                          PortRange{"--replay-base-port", s.replay_base_port, cores}};
  const std::string engines =
      std::to_string(s.engines) + " engines" +
      (s.data_parallel_size == 1 ? "" : " of " + std::to_string(s.data_parallel_size) + " ranks");
  for (const PortRange& range : ranges) {
    if (range.base + range.size - 1 <= kPortMax) continue;
    return invalid(range.flag + " " + std::to_string(range.base) + " leaves no room for " +
                   engines + " below port 65536: choose a lower port");
  }
  for (std::size_t a = 0; a < ranges.size(); ++a) {
    for (std::size_t b = a + 1; b < ranges.size(); ++b) {
      // Each pair of ranges is compared. The lower one must end before the higher one begins.
      const PortRange& low = ranges[a].base <= ranges[b].base ? ranges[a] : ranges[b];
      const PortRange& high = ranges[a].base <= ranges[b].base ? ranges[b] : ranges[a];
      // With base 0 the system chooses free ports, which cannot overlap.
      if (low.base == 0 || low.base + low.size <= high.base) continue;
      return invalid("the ports of " + low.flag + " " + std::to_string(low.base) + " and " +
                     high.flag + " " + std::to_string(high.base) + " overlap for " + engines +
                     ", which take " + std::to_string(low.size) + " of " + low.flag + ": set " +
                     high.flag + " to " + std::to_string(low.base + low.size) + " or above");
    }
  }
  return Done{};
}

Result<Done> check_faults(const SimulateSettings& s) {
  for (const std::string& text : s.faults) {
    const auto fault = faults::parse_fault(text);
    if (!fault.ok()) return invalid("--fault " + text + ": " + fault.error().message);
    if (fault->engine && *fault->engine >= s.engines) {
      return invalid("--fault " + text + ": there are " + std::to_string(s.engines) +
                     " engines, numbered from 0");
    }
    // Without p the restart would happen once and immediately, before any request.
    if (fault->kind == faults::FaultKind::Restart && !fault->probability) {
      return invalid("--fault " + text + ": give p, the probability of a restart per request");
    }
  }
  return Done{};
}

}  // namespace

contract::SettingTable setting_table(SimulateSettings& settings) {
  SettingTable table;
  add_places(table, settings);
  add_model(table, settings);
  add_speed(table, settings);
  add_events(table, settings);
  add_faults(table, settings);
  return table;
}

Result<Done> validate(const SimulateSettings& settings) {
  SL_TRY(check_ranges(settings));
  SL_TRY(check_ports(settings));
  SL_TRY(check_faults(settings));
  const auto format = SL_TRY(core::parse_event_format(settings.event_encoding));
  if (settings.window_blocks > 0 && !core::tells_group_kinds(format)) {
    return invalid(
        "--window-blocks needs events that report the kind of a cache group: use --event-encoding "
        "v0.22 or later");
  }
  if (settings.event_hashes != "int" && settings.event_hashes != "bytes") {
    return invalid("--event-hashes must be \"int\" or \"bytes\"");
  }
  return Done{};
}

}  // namespace sightline::cluster
