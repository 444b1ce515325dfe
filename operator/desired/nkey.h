// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sightline::desired {

inline constexpr std::size_t kKeyBytes = 32;
// Secret bytes of the kernel's generator.
using KeyBytes = std::array<std::uint8_t, kKeyBytes>;

// A user of a NATS server. It signs the server's challenge with the seed (github.com/nats-io/nkeys:
// Ed25519, in base32, with the kind in front and CRC-16/XMODEM at the end).
struct Nkey {
  // "SU…", 58 characters: the content of the file of --nats-nkey-file.
  std::string seed;
  // "U…", 56 characters: named in the server's configuration.
  std::string public_key;
};

// The same bytes always give the same key.
Nkey user_nkey(const KeyBytes& bytes);

}  // namespace sightline::desired
