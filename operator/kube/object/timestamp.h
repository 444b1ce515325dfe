// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

// Times as Kubernetes writes them (RFC 3339). Pure.
namespace sightline::object {

// metav1.Time: "2026-11-25T04:05:06Z".
[[nodiscard]] std::string to_timestamp(WallTime time);
// metav1.MicroTime: "2026-11-25T04:05:06.000007Z", always six digits.
[[nodiscard]] std::string to_micro_timestamp(WallTime time);
// Either form, with any number of digits up to nine and any offset from UTC; years 1970 to 2261.
[[nodiscard]] std::optional<WallTime> parse_timestamp(std::string_view text);

}  // namespace sightline::object
