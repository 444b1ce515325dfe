// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/nkey.h"

#include <memory>
#include <string_view>
#include <utility>

#include <openssl/evp.h>

#include "common/base/bytes.h"
#include "common/base/check.h"

namespace sightline::desired {
namespace {

// Kinds, in the upper bits of the first byte; a seed has that of its key in the bits that follow.
constexpr std::uint8_t kSeedKind = 18 << 3;
constexpr std::uint8_t kUserKind = 20 << 3;
constexpr std::string_view kBase32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

std::uint16_t crc16(ByteView bytes) {
  std::uint16_t crc = 0;
  for (const std::uint8_t byte : bytes) {
    crc = static_cast<std::uint16_t>(crc ^ (byte << 8U));
    for (int bit = 0; bit < 8; ++bit) {
      const bool is_set = (crc & 0x8000U) != 0;
      crc = static_cast<std::uint16_t>(crc << 1U);
      if (is_set) crc ^= 0x1021U;
    }
  }
  return crc;
}

std::string to_base32(ByteView bytes) {
  std::string text;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    held = (held << 8U) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += kBase32[(held >> bits) & 31U];
    }
  }
  if (bits > 0) text += kBase32[(held << (5 - bits)) & 31U];
  return text;
}

std::string encoded(Bytes kind, const KeyBytes& key) {
  Bytes bytes = std::move(kind);
  bytes.insert(bytes.end(), key.begin(), key.end());
  const std::uint16_t crc = crc16(bytes);
  bytes.push_back(static_cast<std::uint8_t>(crc));
  bytes.push_back(static_cast<std::uint8_t>(crc >> 8U));
  return to_base32(bytes);
}

KeyBytes public_of(const KeyBytes& seed) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()),
      EVP_PKEY_free);
  SL_CHECK(key != nullptr);
  KeyBytes bytes{};
  std::size_t size = bytes.size();
  SL_CHECK(EVP_PKEY_get_raw_public_key(key.get(), bytes.data(), &size) == 1);
  return bytes;
}

}  // namespace

Nkey user_nkey(const KeyBytes& bytes) {
  const auto user_bits = static_cast<std::uint8_t>((kUserKind & 31U) << 3U);
  return {
      .seed = encoded({static_cast<std::uint8_t>(kSeedKind | (kUserKind >> 5U)), user_bits}, bytes),
      .public_key = encoded({kUserKind}, public_of(bytes))};
}

}  // namespace sightline::desired
