// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/media_id.h"

#include <gtest/gtest.h>

namespace sightline::media {
namespace {

const contract::IdentityKey kKey = contract::development_identity_key();

// Values of the reference implementation (Python package blake3 1.0.11).
TEST(MediaId, IsTheKeyedBlake3OfTheBytes) {
  EXPECT_EQ(media_id_of(kKey, {}).hex(),
            "ab164577519a59fed149855536a0e5d6280c23f4d6f5e28c1081eb20a4e32292");
  EXPECT_EQ(media_id_of(kKey, bytes_of("abc")).hex(),
            "52d1b0db20ce61d515ed5733dd18d68e680aea8a4b2e467e3b6a56be33949b53");
  Bytes many;
  for (int i = 0; i < 5000; ++i) many.push_back(static_cast<std::uint8_t>(i % 251));
  EXPECT_EQ(media_id_of(kKey, many).hex(),
            "429d010eff9fb1d330d22d19cd2b862a4455feb721fb617c47505b14c3d2d2f5");
}

TEST(MediaId, EveryByteAndTheKeyMatter) {
  const MediaId id = media_id_of(kKey, bytes_of("picture"));
  EXPECT_NE(id, media_id_of(kKey, bytes_of("picturf")));
  EXPECT_NE(id, media_id_of(kKey, bytes_of("picture ")));
  contract::IdentityKey other = kKey;
  other.bytes[31] ^= 1;
  EXPECT_NE(id, media_id_of(other, bytes_of("picture")));
  EXPECT_EQ(id, media_id_of(kKey, bytes_of("picture")));
}

TEST(MediaId, TenantsShareNoIdentity) {
  EXPECT_EQ(tenant_key(kKey, ""), kKey);
  EXPECT_EQ(to_hex(tenant_key(kKey, "acme").bytes),
            "8140b1d40800e2d3df7f1c92b24cdc2f028623249ee74523249214034e70ae21");
  EXPECT_EQ(media_id_of(tenant_key(kKey, "acme"), bytes_of("abc")).hex(),
            "6c5df5039a38b729613f9fac7e88e4cbfda7f36b24a715d1a8c1a473eafb89d2");
  EXPECT_FALSE(tenant_key(kKey, "acme") == tenant_key(kKey, "acm"));
}

}  // namespace
}  // namespace sightline::media
