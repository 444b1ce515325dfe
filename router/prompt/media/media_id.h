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

// Identity of one media item: keyed BLAKE3 (32 bytes) of its encoded bytes. Sent to vLLM as the
// part's uuid, so that the engine's own cache keys name the bytes it processes.
struct MediaId {
  std::array<std::uint8_t, 32> bytes{};
  friend auto operator<=>(const MediaId&, const MediaId&) = default;
  // 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string hex() const;
};

// Pure and deterministic: equal bytes under one key have one identity, wherever they came from.
MediaId media_id_of(const contract::IdentityKey& key, ByteView encoded);

// The key of one tenant: BLAKE3 in key derivation mode, context "sightline 2026 media tenant",
// over the deployment's key followed by the tenant's name. Tenants share no identity, so none can
// probe what another has sent. The empty tenant has the deployment's own key.
contract::IdentityKey tenant_key(const contract::IdentityKey& deployment, std::string_view tenant);

}  // namespace sightline::media
