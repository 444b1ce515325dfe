// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/engine/family/server_facts.h"
#include "router/engine/family/version.h"

// What a vLLM server answers. Pure; formats as recorded from vLLM 0.32.
namespace sightline::vllm {

// GET /version: {"version":"0.32.0"}. Errors: Corrupt.
Result<family::Version> parse_version(std::string body);

// GET /kv_event_sources (vLLM 0.31 and later): object keyed by rank, sorted by rank here; may be
// empty. Errors: Corrupt.
Result<std::vector<family::EventSource>> parse_event_sources(std::string body);

// GET /metrics, Prometheus text: vllm:num_requests_running, vllm:num_requests_waiting,
// vllm:kv_cache_usage_perc and the labels block_size and num_gpu_blocks of vllm:cache_config_info,
// per engine label: the rank's number, 0 where it is none below kRanksMax. Other lines are skipped.
// Errors: Corrupt when none of these is there.
Result<family::ServerLoad> parse_metrics(std::string_view text);

}  // namespace sightline::vllm
