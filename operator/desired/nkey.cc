// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/nkey.h"

#include <memory>
#include <utility>

#include <openssl/evp.h>

#include "common/base/bytes.h"
#include "common/base/check.h"
#include "common/base/nkey_text.h"

namespace sightline::desired {
namespace {

// Kinds, in the upper bits of the first byte. A seed has the kind of its key in the following bits.
constexpr std::uint8_t kSeedKind = 18 << 3;
constexpr std::uint8_t kUserKind = 20 << 3;

std::string encoded(Bytes kind, const KeyBytes& key) {
  Bytes bytes = std::move(kind);
  bytes.insert(bytes.end(), key.begin(), key.end());
  add_crc(bytes);
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
