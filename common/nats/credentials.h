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

// What is shown to a server that asks who we are.
struct Credentials {
  enum class Kind : std::uint8_t { None, Jwt, Password, Token, Nkey };
  Kind kind = Kind::None;
  std::string user;    // Password: user name; Nkey: public key
  std::string secret;  // Password, Token
};

inline constexpr std::size_t kCredentialsBytesMax = 64 << 10;  // of a file

// Reads the files that the settings name. Errors: InvalidArgument, naming the setting and never
// what the file holds.
Result<Credentials> read_credentials(const contract::NatsSettings& settings);

// What a credentials file says. Errors: InvalidArgument when it is empty or has a further line.
Result<Credentials> parse_credentials(std::string_view text);

// The public key of a user's seed: "SU" and 56 more characters of base32, alone or on a line of
// its own. Errors: InvalidArgument.
Result<std::string> nkey_of_seed(std::string_view text);

}  // namespace sightline::nats
