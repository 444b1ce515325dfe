// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"

#include "router/workers/fleet/served.h"

// What a router tells its frontends of the workers, as JSON. Pure.
namespace sightline::selection_json {

struct Told {
  std::string identity;  // what the keys of the deployment depend on
  fleet::Served served;
  // Ranks of which the router knows at this moment what they hold; nothing: it does not tell.
  std::optional<std::uint32_t> known = std::nullopt;
  std::string not_ready = {};  // why others should be asked if there are any; empty: it is ready
  // Why what the router knows of blocks and of others' load is old, as it is cut off from NATS or
  // hears it late; empty: it is fresh. Stays the same while it is so.
  std::string stale = {};

  bool operator==(const Told&) const = default;
};
// Models beyond the limits, in number or by the length of a name, are left out: no frontend takes
// requests for them.
std::string write_told(const Told& told);
Result<Told> read_told(std::string body);

}  // namespace sightline::selection_json
