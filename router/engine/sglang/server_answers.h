// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

#include "router/engine/family/server_facts.h"
#include "router/engine/family/version.h"

// What an SGLang server answers. Pure; formats as recorded from SGLang 0.5.23.
namespace sightline::sglang {

// GET /server_info: "version". Errors: Corrupt.
Result<family::Version> parse_version(std::string body);

// GET /server_info: "kv_events" {publisher, endpoint_host, endpoint_port_base, dp_size, block_size,
// replay_endpoint_port_base}, of which rank r has the ports r above the bases. Without it there are
// no sources. The host 0.0.0.0, at which SGLang binds, is told as "*". Errors: Corrupt.
Result<std::vector<family::EventSource>> parse_event_sources(std::string body);

// GET /v1/loads?include=core&format=json: "loads", one entry a rank: dp_rank, num_running_reqs,
// num_waiting_reqs, token_usage. Errors: Corrupt.
Result<family::ServerLoad> parse_loads(std::string body);

}  // namespace sightline::sglang
