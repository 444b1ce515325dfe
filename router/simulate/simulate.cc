// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/simulate/simulate.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/runtime/shutdown.h"

#include "router/simulate/simulated_cluster.h"

namespace sightline::simulate {

namespace {

using contract::SettingTable;
using contract::SettingText;

SettingText text(std::string_view flag, std::string_view placeholder, std::string_view help) {
  std::string path = "simulate." + std::string(flag);
  std::replace(path.begin(), path.end(), '-', '_');
  return {std::move(path), std::string(flag), std::string(placeholder), std::string(help)};
}

void add_places(SettingTable& table, SimulateSettings& s) {
  table.add_integer<std::uint32_t>(text("engines", "N", "Engines to simulate."), s.engines,
                                   {1, kEnginesMax});
  table.add_text(text("host", "ADDRESS", "Address that all ports listen on."), s.host);
  table.add_integer<std::uint16_t>(
      text("base-port", "PORT", "HTTP port of engine 0; engine i takes base+i. 0 = any free port."),
      s.base_port, {0, kPortMax});
  table.add_integer<std::uint16_t>(
      text("events-base-port", "PORT", "KV event port of engine 0; engine i takes base+i."),
      s.events_base_port, {0, kPortMax});
  table.add_integer<std::uint16_t>(
      text("replay-base-port", "PORT", "Replay port of engine 0; engine i takes base+i."),
      s.replay_base_port, {0, kPortMax});
  table.add_integer<std::uint32_t>(text("threads", "N", "Threads that the engines share."),
                                   s.threads, {1, kThreadsMax});
}

void add_model(SettingTable& table, SimulateSettings& s) {
  table.add_text(text("model-path", "DIR", "Hugging Face model directory."), s.model_path);
  table.add_text(text("served-model-name", "NAME",
                      "Model name in requests and answers; empty = the model path."),
                 s.served_model_name);
  table.add_integer<std::uint32_t>(
      text("max-model-len", "TOKENS", "Longest prompt plus answer; 0 = what config.json says."),
      s.max_model_len, {0, kTokensMax});
  table.add_text_list(text("lora-module", "NAME", "LoRA adapter that requests may name as model."),
                      s.lora_modules);
  table.add_integer<std::uint32_t>(text("block-size", "TOKENS", "Tokens of a cache block."),
                                   s.block_size, {1, kBlockTokensMax});
  table.add_integer<std::uint32_t>(text("blocks", "N", "Cache blocks of each engine."), s.blocks,
                                   {2, kBlocksMax});
  table.add_number(
      text("mm-processor-cache-gb", "GIB", "Processed media remembered by uuid; 0 = none."),
      s.mm_processor_cache_gb, {0, kCacheGibMax});
}

void add_speed(SettingTable& table, SimulateSettings& s) {
  table.add_number(
      text("prefill-tokens-per-s", "RATE", "Prompt tokens per second of an engine; 0 = instant."),
      s.prefill_tokens_per_s, {0, kRateMax});
  table.add_number(text("encoder-tokens-per-s", "RATE",
                        "Media tokens per second of an engine, on top of prefill; 0 = instant."),
                   s.encoder_tokens_per_s, {0, kRateMax});
  table.add_number(
      text("decode-tokens-per-s", "RATE", "Output tokens per second of each request; 0 = instant."),
      s.decode_tokens_per_s, {0, kRateMax});
  table.add_integer<std::uint32_t>(
      text("max-running", "N", "Requests that an engine computes at the same time."), s.max_running,
      {1, kRunningMax});
  table.add_integer<std::uint32_t>(
      text("max-batched-tokens", "TOKENS", "Prompt and output tokens of one step."),
      s.max_batched_tokens, {1, kTokensMax});
  table.add_integer<std::uint32_t>(
      text("output-tokens-default", "TOKENS", "Answer length of a request that sets none."),
      s.output_tokens_default, {1, kTokensMax});
  table.add_switch(text("instant", "",
                        "A fixed answer without model, cache, events or timers, for "
                        "measuring what a proxy costs."),
                   s.instant);
}

void add_events(SettingTable& table, SimulateSettings& s) {
  table.add_text(text("event-encoding", "VERSION",
                      "vLLM release whose event encoding is spoken: v0.11 to v0.32."),
                 s.event_encoding);
  table.add_choice(
      text("event-hashes", "KIND", "Block hashes in events: 64-bit integers or bytes."),
      s.event_hashes, {"int", "bytes"});
}

}  // namespace

contract::SettingTable setting_table(SimulateSettings& settings) {
  SettingTable table;
  add_places(table, settings);
  add_model(table, settings);
  add_speed(table, settings);
  add_events(table, settings);
  return table;
}

Result<int> run_simulate(const SimulateSettings& settings) {
  // Before any thread: blocks the signals in all of them.
  Shutdown shutdown;
  auto cluster = SL_TRY(SimulatedCluster::start(settings));
  for (std::size_t i = 0; i < cluster->size(); ++i) {
    const std::string name = "w" + std::to_string(i);
    std::printf("engine %zu: --worker '%s'\n", i, cluster->endpoints(i).worker_flag(name).c_str());
  }
  std::printf("ready\n");
  std::fflush(stdout);
  shutdown.on_stop("engines", [&cluster] { cluster.reset(); });
  shutdown.wait();
  return 0;
}

}  // namespace sightline::simulate
