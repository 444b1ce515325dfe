// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

#include "router/cache/keys/block_key.h"

namespace sightline::selection_json {

// Block keys as base64 (RFC 4648) of their 64-bit values, little-endian.
std::string write_keys(std::span<const keys::BlockKey> keys);
// Errors: InvalidArgument: no base64, no whole number of keys, or more than count_max.
Result<std::vector<keys::BlockKey>> read_keys(std::string_view text, std::size_t count_max);

}  // namespace sightline::selection_json
