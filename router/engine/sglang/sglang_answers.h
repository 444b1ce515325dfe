// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "common/base/result.h"

#include "router/engine/family/server_facts.h"
#include "router/engine/family/version.h"

// Parses the answers of an SGLang server. Pure. The formats are recorded from SGLang 0.5.23.
namespace sightline::sglang {

// Reads "version" of GET /server_info. Error: Corrupt.
Result<family::Version> parse_version(std::string body);

// Reads "kv_events" of GET /server_info: {publisher, endpoint_host, endpoint_port_base, dp_size,
// block_size, replay_endpoint_port_base}. Rank r has the ports r above the bases. Without
// "kv_events" there are no sources. SGLang binds at host 0.0.0.0, which becomes "*". Error:
// Corrupt.
Result<std::vector<family::EventSource>> parse_event_sources(std::string body);

// Reads GET /v1/loads?include=core&format=json: the list "loads" with one entry for each rank:
// dp_rank, num_running_reqs, num_waiting_reqs, token_usage. Error: Corrupt.
Result<family::ServerLoad> parse_loads(std::string body);

}  // namespace sightline::sglang
