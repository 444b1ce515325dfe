// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sightline::desired {

inline constexpr std::size_t kKeyBytes = 32;
// Of the kernel's generator; nobody else knows it.
using KeyBytes = std::array<std::uint8_t, kKeyBytes>;

// A user of a NATS server, who signs the server's question with the seed (github.com/nats-io/nkeys:
// Ed25519, in base32 with a kind in front and CRC-16/XMODEM behind).
struct Nkey {
  std::string seed;        // "SU…", 58 characters: what --nats-nkey-file holds
  std::string public_key;  // "U…", 56 characters: what the server's configuration names
};

// Of the same bytes always the same.
Nkey user_nkey(const KeyBytes& bytes);

}  // namespace sightline::desired
