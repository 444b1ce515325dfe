// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/envelope/envelope.h"

#include <gtest/gtest.h>

namespace sightline::envelope {
namespace {

const SealScope kScope{.scope = "default/default", .revision = "0", .fingerprint = "f"};
constexpr std::string_view kSubject = "sl.default.default.0.kv.w0.0";

Sealer sealer(const SealScope& scope = kScope) {
  return Sealer(contract::development_identity_key(), scope);
}

Refusal refusal_of(const Opened& opened) { return std::get<Refusal>(opened); }

TEST(Envelope, OpensToWhatWasSealed) {
  const std::string payload = std::string("a\0b", 3);
  const std::string bytes = sealer().seal(kSubject, payload);
  EXPECT_EQ(bytes.size(), payload.size() + kSealBytes);
  EXPECT_EQ(std::get<std::string_view>(sealer().open(kSubject, bytes)), payload);
  EXPECT_EQ(std::get<std::string_view>(sealer().open(kSubject, sealer().seal(kSubject, ""))), "");
}

TEST(Envelope, IsRefusedWhenAnyByteIsAnother) {
  const std::string bytes = sealer().seal(kSubject, "payload");
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    for (const char bit : {'\x01', '\x80'}) {
      std::string forged = bytes;
      forged[i] = static_cast<char>(forged[i] ^ bit);
      EXPECT_EQ(refusal_of(sealer().open(kSubject, forged)), Refusal::WrongTag) << i;
    }
  }
}

TEST(Envelope, IsRefusedWhenBytesAreMissingOrAdded) {
  const std::string bytes = sealer().seal(kSubject, "payload");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto refusal = refusal_of(sealer().open(kSubject, bytes.substr(0, size)));
    EXPECT_EQ(refusal, size < kSealBytes ? Refusal::TooShort : Refusal::WrongTag) << size;
  }
  EXPECT_EQ(refusal_of(sealer().open(kSubject, bytes + "x")), Refusal::WrongTag);
}

TEST(Envelope, DistinguishesAnotherVersionFromAForgery) {
  std::string bytes = sealer().seal(kSubject, "payload");
  bytes[0] = static_cast<char>(kVersion + 1);
  EXPECT_EQ(refusal_of(sealer().open(kSubject, bytes)), Refusal::OtherVersion);
}

TEST(Envelope, BelongsToItsSubject) {
  const std::string bytes = sealer().seal(kSubject, "payload");
  EXPECT_EQ(refusal_of(sealer().open("sl.default.default.0.kv.w1.0", bytes)), Refusal::WrongTag);
  // Bytes that move from the subject to the payload.
  const std::string shifted = sealer().seal("ab", "c");
  EXPECT_EQ(refusal_of(sealer().open("a", shifted)), Refusal::WrongTag);
}

TEST(Envelope, OpensOnlyWithItsKeyScopeRevisionAndModel) {
  const std::string bytes = sealer().seal(kSubject, "payload");
  contract::IdentityKey key = contract::development_identity_key();
  key.bytes[31] ^= 1U;
  const Sealer others[] = {
      Sealer(key, kScope),
      sealer({.scope = "default/other", .revision = "0", .fingerprint = "f"}),
      sealer({.scope = "default/default", .revision = "1", .fingerprint = "f"}),
      sealer({.scope = "default/default", .revision = "0", .fingerprint = "g"}),
      // The same concatenated bytes, divided at another place.
      sealer({.scope = "default/default0", .revision = "", .fingerprint = "f"}),
  };
  for (const Sealer& other : others) {
    EXPECT_EQ(refusal_of(other.open(kSubject, bytes)), Refusal::WrongTag);
  }
}

}  // namespace
}  // namespace sightline::envelope
