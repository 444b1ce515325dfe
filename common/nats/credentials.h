// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/contract/process_settings.h"

namespace sightline::nats {

// How this process proves its identity to a server.
struct Credentials {
  enum class Kind : std::uint8_t { None, Jwt, Password, Token, Nkey };
  Kind kind = Kind::None;
  // Password: the user's name. Nkey: the public key.
  std::string user;
  // Only for Password and Token.
  std::string secret;
};

// The most bytes of a file.
inline constexpr std::size_t kCredentialsBytesMax = 64 << 10;

// Reads the files that the settings name. Errors: InvalidArgument that names the setting, never the
// content of the file.
Result<Credentials> read_credentials(const contract::NatsSettings& settings);

// Parses a credentials file. Errors: InvalidArgument if it is empty, or has more than one line
// without being a JWT file.
Result<Credentials> parse_credentials(std::string_view text);

// The public key of a user's seed. The seed is "SU" and 56 more characters of base32, alone or on a
// line of its own. Errors: InvalidArgument.
Result<std::string> nkey_of_seed(std::string_view text);

}  // namespace sightline::nats
