// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/media_id.h"

#include <blake3.h>

namespace sightline::media {

std::string MediaId::hex() const { return to_hex(bytes); }

MediaId media_id_of(const contract::IdentityKey& key, ByteView encoded) {
  // The key is secret. Without it no client can compute the identity of an image.
  blake3_hasher hasher;
  blake3_hasher_init_keyed(&hasher, key.bytes.data());
  blake3_hasher_update(&hasher, encoded.data(), encoded.size());
  MediaId id;
  blake3_hasher_finalize(&hasher, id.bytes.data(), id.bytes.size());
  return id;
}

contract::IdentityKey tenant_key(const contract::IdentityKey& deployment, std::string_view tenant) {
  // Requests without a tenant share the deployment's key.
  if (tenant.empty()) return deployment;
  blake3_hasher hasher;
  blake3_hasher_init_derive_key(&hasher, "sightline 2026 media tenant");
  blake3_hasher_update(&hasher, deployment.bytes.data(), deployment.bytes.size());
  blake3_hasher_update(&hasher, tenant.data(), tenant.size());
  contract::IdentityKey key;
  blake3_hasher_finalize(&hasher, key.bytes.data(), key.bytes.size());
  return key;
}

}  // namespace sightline::media
