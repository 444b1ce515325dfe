// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string_view>

#include "common/admin_port/admin_server.h"
#include "common/runtime/metrics.h"
#include "common/runtime/token_file.h"

namespace sightline::push {

// Lets in who names a token of the file. Without a file everybody is answered 403 with the flag
// that gives one, a wrong token 401; both are counted as pushes of `what` that were "unauthorized".
// `tokens` may be null; it and the metrics outlive the route.
admin_port::Entry guarded(std::string_view what, runtime::TokenFile* tokens,
                          runtime::Metrics& metrics, std::size_t body_bytes_max);

}  // namespace sightline::push
