// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

// Times in the form of Kubernetes (RFC 3339). Pure.
namespace sightline::object {

// As metav1.Time: "2026-11-25T04:05:06Z".
[[nodiscard]] std::string to_timestamp(WallTime time);
// As metav1.MicroTime: "2026-11-25T04:05:06.000007Z", always with six digits.
[[nodiscard]] std::string to_micro_timestamp(WallTime time);
// Reads both forms, with up to nine digits and any offset from UTC. The years 1970 to 2261. Returns
// nothing for other texts.
[[nodiscard]] std::optional<WallTime> parse_timestamp(std::string_view text);

}  // namespace sightline::object
