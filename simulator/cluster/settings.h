// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/setting_table.h"

namespace sightline::cluster {

// Upper bounds of settings.
inline constexpr std::uint32_t kEnginesMax = 64;
inline constexpr std::uint32_t kRanksMax = 64;  // data-parallel ranks of an engine
inline constexpr std::uint32_t kThreadsMax = 64;
inline constexpr std::uint32_t kBlockTokensMax = 1024;
inline constexpr std::uint32_t kBlocksMax = 1U << 24U;
inline constexpr std::uint32_t kRunningMax = 65'536;
inline constexpr std::uint32_t kTokensMax = 1U << 20U;
inline constexpr double kCacheGibMax = 1024;
inline constexpr double kRateMax = 1e12;  // tokens per second
inline constexpr std::uint16_t kPortMax = 65'535;

// `sightline simulate`: each field is the flag of the same name with dashes
// (lora_modules: --lora-module, repeated).
struct SimulateSettings {
  // Engines to simulate, 1..64.
  std::uint32_t engines = 2;
  // Address that all ports listen on. Also stands in the topic and in printed worker flags.
  std::string host = "127.0.0.1";
  // Engine cores behind each engine's URL, each with a cache and events of its own. 1..64.
  std::uint32_t data_parallel_size = 1;
  // First port of each range. Engine i takes base + i of the first; rank r of it takes
  // base + i * data_parallel_size + r of the others. 1..65535; 0 = any free ports.
  std::uint16_t base_port = 8101;
  std::uint16_t events_base_port = 5557;
  std::uint16_t replay_base_port = 5657;
  // Threads that serve HTTP and run the engines; engine i lives on thread i modulo this. 1..64.
  std::uint32_t threads = 1;

  // Hugging Face model directory. Not needed with instant.
  std::string model_path;
  // The model's name in requests, answers and metrics. Empty = model_path.
  std::string served_model_name;
  // Longest prompt plus output, in tokens; 0 = what config.json says.
  std::uint32_t max_model_len = 0;
  // LoRA adapters that requests may name as model; they compute nothing else.
  std::vector<std::string> lora_modules;

  // Tokens per cache block, 1..1024.
  std::uint32_t block_size = 16;
  // Cache blocks of each engine, 2..16777216; vLLM keeps one of them unused.
  std::uint32_t blocks = 4096;
  // The last block of each cache hit is computed again (vLLM with EAGLE or MTP).
  bool drop_last_hit = false;
  // Blocks of the sliding window of a second cache group, as hybrid models have it, 0..16777216;
  // 0 = none. Needs events that tell cache groups and their kind (v0.22).
  std::uint32_t window_blocks = 0;
  // Processed media remembered by uuid, in GiB, 0..1024; 0 = none, then a uuid without bytes
  // fails (vLLM 0.32: --mm-processor-cache-gb, default 4).
  double mm_processor_cache_gb = 4.0;

  // Speed of an engine, in tokens per second; 0 = instant. Prompt tokens of all requests share
  // prefill_tokens_per_s, media tokens share encoder_tokens_per_s on top; decode_tokens_per_s is
  // what each running request gets.
  double prefill_tokens_per_s = 0;
  double encoder_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  // Requests in one step, 1..65536; more wait (vLLM: --max-num-seqs).
  std::uint32_t max_running = 256;
  // Prompt and output tokens in one step, 1..1048576 (vLLM: --max-num-batched-tokens).
  std::uint32_t max_batched_tokens = 8192;
  // Output tokens of a request that sets no limit, 1..1048576. vLLM fills the whole context.
  std::uint32_t output_tokens_default = 16;

  // Release whose event encoding is spoken, v0.11 … v0.32.
  std::string event_encoding = "v0.32";
  // "int" (64 bits) or "bytes" (whole digests).
  std::string event_hashes = "int";

  // No replay socket, which is what vLLM has unless told otherwise.
  bool no_replay = false;

  // Faults to inject, see faults::parse_fault; and the seed of their draws.
  std::vector<std::string> faults;
  std::uint32_t fault_seed = 1;

  // A fixed answer without template, tokenizer, cache, events or timers: the cheapest possible
  // engine, for measuring what a proxy in front of it costs. Prompts are not looked at.
  bool instant = false;
};

// The flags, bound to the fields of settings, which must outlive the table.
contract::SettingTable setting_table(SimulateSettings& settings);

// Checks ranges, and that the port ranges of the engines do not overlap. Errors: InvalidArgument
// naming the flag and a way out.
Result<Done> validate(const SimulateSettings& settings);

}  // namespace sightline::cluster
