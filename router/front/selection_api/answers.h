// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/http/message.h"

#include "router/front/leases/lease_book.h"
#include "router/front/selection/selection.h"
#include "router/workers/fleet/fleet.h"

// The answers of the selection API. Pure functions.
namespace sightline::selection_api {

// Returns an answer with a body of JSON.
http::Response json_response(int status, std::string body);
// Returns the status of the error. The body contains its cause, which the router's own frontends
// read.
http::Response refused(const Error& error);
// Returns the answer to a request that the HTTP server itself rejects. It has no cause, because it
// says nothing about the choice of a worker.
http::Response refusal(int status, const Error& error);
// Returns 409 with this message. `param` names the member at fault.
http::Response conflict(const std::string& message, const std::string& param);
// Returns 409 for a reservation that has ended.
http::Response over(const leases::Name& name);

// Returns all workers with the load of their ranks.
std::string workers_json(const fleet::FleetSnapshot& fleet, Instant now);
// Returns the leading tokens of a prompt that each rank holds, tier by tier.
std::string overlaps_json(const selection::Explanation& explanation, std::uint32_t block_size);

}  // namespace sightline::selection_api
