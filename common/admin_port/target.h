// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace sightline::admin_port {

// All values of each parameter.
using Query = std::map<std::string, std::vector<std::string>>;

// Decodes the escapes of a text, for example "%2F" (RFC 3986 section 2.1). Errors: InvalidArgument
// for a percent sign without two hexadecimal digits. Pure.
Result<std::string> decode_escapes(std::string_view text);

// The decoded parameters of a query. A parameter without '=' has an empty value. Pure.
Result<Query> decode_query(std::string_view query);

}  // namespace sightline::admin_port
