// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string_view>

#include "common/admin_port/admin_server.h"
#include "common/runtime/metrics.h"
#include "common/runtime/token_file.h"

namespace sightline::push {

// Returns a route entry that admits only requests with a token of the file. Without a file, every
// request gets 403 with the flag that sets one. A wrong token gets 401. Both count as pushes of
// `what` with the result "unauthorized". `tokens` may be null. It and the metrics must live longer
// than the route.
admin_port::Entry guarded(std::string_view what, runtime::TokenFile* tokens,
                          runtime::Metrics& metrics, std::size_t body_bytes_max);

}  // namespace sightline::push
