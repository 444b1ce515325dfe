// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/engine/family/server_facts.h"
#include "router/engine/family/version.h"

// Parses the answers of a vLLM server. Pure. The formats are recorded from vLLM 0.32.
namespace sightline::vllm {

// Reads GET /version: {"version":"0.32.0"}. Error: Corrupt.
Result<family::Version> parse_version(std::string body);

// Reads GET /kv_event_sources (vLLM 0.31 and later), an object with ranks as keys. Returns the
// sources sorted by rank. There may be no source. Error: Corrupt.
Result<std::vector<family::EventSource>> parse_event_sources(std::string body);

// Reads GET /metrics in Prometheus' text format, and skips all other lines:
// - vllm:num_requests_running, vllm:num_requests_waiting, vllm:kv_cache_usage_perc,
// - vllm:generation_tokens_total, summed over all ranks,
// - the labels block_size and num_gpu_blocks of vllm:cache_config_info.
//
// The label `engine` is the rank's number. A value other than a number below kRanksMax counts as
// rank 0. Error: Corrupt if no rank has any of these metrics. generation_tokens_total alone is not
// enough.
Result<family::ServerLoad> parse_metrics(std::string_view text);

}  // namespace sightline::vllm
