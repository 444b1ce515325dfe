// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/result.h"

namespace sightline::contract {

// The deployment's secret behind all identities that the router derives: MediaId and BlockKey. All
// routers of a deployment share it. A new key makes all images unusable that engines cached under
// the old identities. It never leaves the process.
struct IdentityKey {
  static constexpr std::size_t kBytes = 32;
  std::array<std::uint8_t, kBytes> bytes{};
  friend bool operator==(const IdentityKey&, const IdentityKey&) = default;
};

// The fixed key of deployments that configure no key: the ASCII text
// "sightline-development-key-000001". It is public, so a client could compute identities. Use it
// for development only. The program logs a warning when it uses it.
IdentityKey development_identity_key();

// Reads the content of an identity key file: 32 raw bytes, or 64 hexadecimal digits with white
// space around them. Errors: InvalidArgument that states both forms.
Result<IdentityKey> parse_identity_key(std::string_view file_content);

}  // namespace sightline::contract
