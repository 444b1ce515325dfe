// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The version that an engine's server tells. Formats are told from the bytes that it sends, never
// from this; the version decides only what no byte shows. Pure.
namespace sightline::family {

inline constexpr std::size_t kVersionBytesMax = 64;
inline constexpr std::uint32_t kVersionNumberMax = 9999;

struct Version {
  std::string text;  // as told: letters, digits and . + - _ only
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;
  // Not built from something between two releases, whose number says little about it.
  bool is_release = false;

  bool operator==(const Version&) const = default;
};

// "0.17.1", "0.32.0+cpu", "0.23.1.dev5+g123", "0.24.0rc1"; nothing: anything else.
std::optional<Version> parse_version(std::string_view text);

}  // namespace sightline::family
