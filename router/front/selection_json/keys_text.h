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

// Returns block keys as base64 (RFC 4648) of their 64-bit values, little-endian.
std::string write_keys(std::span<const keys::BlockKey> keys);
// Reads block keys. Errors: InvalidArgument for invalid base64, an incomplete key or more than
// count_max keys.
Result<std::vector<keys::BlockKey>> read_keys(std::string_view text, std::size_t count_max);

}  // namespace sightline::selection_json
