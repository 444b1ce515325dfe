// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The version that an engine's server reports. The router detects formats from the bytes of a
// message, never from the version. The version decides only what no byte shows. Pure.
namespace sightline::family {

// Limits on a version text and on each of its numbers.
inline constexpr std::size_t kVersionBytesMax = 64;
inline constexpr std::uint32_t kVersionNumberMax = 9999;

// A parsed version.
struct Version {
  // As the server wrote it: letters, digits and . + - _ only.
  std::string text;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;
  // False for a build between two releases, whose number says little about its content.
  bool is_release = false;

  bool operator==(const Version&) const = default;
};

// Parses forms like "0.17.1", "0.32.0+cpu", "0.23.1.dev5+g123", "0.24.0rc1". Returns empty for
// anything else.
std::optional<Version> parse_version(std::string_view text);

}  // namespace sightline::family
