// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/result.h"

#include "router/workers/fleet/fleet.h"

namespace sightline::cli {

// The check `engines` of /readyz: Done while a worker may take a request, if only as a last resort.
// The error says how many there are and what is the matter with the first.
Result<Done> check_engines(const fleet::FleetSnapshot& fleet);

}  // namespace sightline::cli
