// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/bytes.h"
#include "common/contract/identity_key.h"

namespace sightline::media {

// The identity of a media item: keyed BLAKE3 (32 bytes) of its encoded bytes. The router sends it
// to vLLM as the part's uuid. The engine's own cache keys then name the bytes that it processes.
struct MediaId {
  std::array<std::uint8_t, 32> bytes{};
  friend auto operator<=>(const MediaId&, const MediaId&) = default;
  // Returns 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;
};

// Pure. Equal bytes under one key have one identity, in every process and from every source.
MediaId media_id_of(const contract::IdentityKey& key, ByteView encoded);

// Returns the key of one tenant. It is BLAKE3 in key derivation mode, with the context "sightline
// 2026 media tenant". The input is the deployment's key, followed by the tenant's name.
//
// Tenants share no identities. So no tenant can probe which images another one has sent. The empty
// tenant has the deployment's own key.
contract::IdentityKey tenant_key(const contract::IdentityKey& deployment, std::string_view tenant);

}  // namespace sightline::media
