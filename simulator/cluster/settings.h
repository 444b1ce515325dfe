// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/contract/setting_table.h"

namespace sightline::cluster {

// Upper limits of settings.
inline constexpr std::uint32_t kEnginesMax = 64;
// Data-parallel ranks of an engine.
inline constexpr std::uint32_t kRanksMax = 64;
inline constexpr std::uint32_t kThreadsMax = 64;
inline constexpr std::uint32_t kBlockTokensMax = 1024;
inline constexpr std::uint32_t kBlocksMax = 1U << 24U;
inline constexpr std::uint32_t kRunningMax = 65'536;
inline constexpr std::uint32_t kTokensMax = 1U << 20U;
inline constexpr double kCacheGibMax = 1024;
// Tokens per second.
inline constexpr double kRateMax = 1e12;
inline constexpr std::uint16_t kPortMax = 65'535;

// The settings of `sightline simulate`. The flag of a field has its name with dashes. The exception
// is lora_modules, whose flag is --lora-module and may be repeated.
struct SimulateSettings {
  // The number of engines, 1..64.
  std::uint32_t engines = 2;
  // The address that all ports listen on. It is also part of the topic and of printed worker flags.
  std::string host = "127.0.0.1";
  // Engine cores behind the URL of each engine, 1..64. Each has its own cache and events.
  std::uint32_t data_parallel_size = 1;
  // The first port of each range, 1..65535, or 0 for any free ports. Engine i takes base + i of the
  // first range. Its rank r takes base + i * data_parallel_size + r of the other ranges.
  std::uint16_t base_port = 8101;
  std::uint16_t events_base_port = 5557;
  std::uint16_t replay_base_port = 5657;
  // Threads that serve HTTP and run the engines, 1..64. Engine i runs on thread i modulo this
  // number.
  std::uint32_t threads = 1;

  // The Hugging Face model directory. Not needed with `instant`.
  std::string model_path;
  // The model's name in requests, answers and metrics. Empty: model_path.
  std::string served_model_name;
  // Longest prompt plus output, in tokens. 0: the limit of config.json.
  std::uint32_t max_model_len = 0;
  // LoRA adapters that requests may name as model. They do not change the answers.
  std::vector<std::string> lora_modules;

  // Tokens per cache block, 1..1024.
  std::uint32_t block_size = 16;
  // Cache blocks of each engine, 2..16777216. vLLM leaves one of them unused.
  std::uint32_t blocks = 4096;
  // The last block of each cache hit is computed again (vLLM with EAGLE or MTP).
  bool drop_last_hit = false;
  // Blocks in the sliding window of a second cache group, as in hybrid models, 0..16777216. 0: no
  // second group. It needs events that contain cache groups and their kind (v0.22).
  std::uint32_t window_blocks = 0;
  // Memory for processed media by uuid, in GiB, 0..1024. With 0 a uuid without bytes is an error
  // (vLLM 0.32: --mm-processor-cache-gb, default 4).
  double mm_processor_cache_gb = 4.0;

  // The speed of an engine in tokens per second. 0: instantly. The prompt tokens of all requests
  // share prefill_tokens_per_s. Media tokens share encoder_tokens_per_s in addition. Each running
  // request has decode_tokens_per_s.
  double prefill_tokens_per_s = 0;
  double encoder_tokens_per_s = 0;
  double decode_tokens_per_s = 0;
  // Requests in one step, 1..65536. More requests wait (vLLM: --max-num-seqs).
  std::uint32_t max_running = 256;
  // Prompt and output tokens in one step, 1..1048576 (vLLM: --max-num-batched-tokens).
  std::uint32_t max_batched_tokens = 8192;
  // Output tokens of a request without a limit, 1..1048576. vLLM fills the whole context.
  std::uint32_t output_tokens_default = 16;

  // The vLLM release whose event encoding is used, v0.11 … v0.32.
  std::string event_encoding = "v0.32";
  // "int" (64 bits) or "bytes" (whole digests).
  std::string event_hashes = "int";

  // The engine has no replay socket. This is the default of vLLM.
  bool no_replay = false;

  // Faults to inject (faults::parse_fault), and the seed of their draws.
  std::vector<std::string> faults;
  std::uint32_t fault_seed = 1;

  // A fixed answer without template, tokenizer, cache, events or timers. It is the cheapest
  // possible engine, to measure the cost of a proxy. Prompts are not read.
  bool instant = false;
};

// Returns the flags, bound to the fields of `settings`. The settings must live longer than the
// table.
contract::SettingTable setting_table(SimulateSettings& settings);

// Checks the ranges of values, and that the engines' port ranges do not overlap. Errors:
// InvalidArgument with the flag and a solution.
Result<Done> validate(const SimulateSettings& settings);

}  // namespace sightline::cluster
