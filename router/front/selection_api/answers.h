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

// The answers of the selection API. Pure.
namespace sightline::selection_api {

http::Response json_response(int status, std::string body);
// The status of the error, with its cause for our own frontends.
http::Response refused(const Error& error);
// What the server itself refuses; without a cause, as it says nothing of the choice.
http::Response refusal(int status, const Error& error);
http::Response conflict(const std::string& message, const std::string& param);
http::Response over(const leases::Name& name);

// All workers with the load of their ranks.
std::string workers_json(const fleet::FleetSnapshot& fleet, Instant now);
// Leading tokens that each rank holds, tier by tier.
std::string overlaps_json(const selection::Explanation& explanation, std::uint32_t block_size);

}  // namespace sightline::selection_api
