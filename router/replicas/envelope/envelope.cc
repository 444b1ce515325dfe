// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/envelope/envelope.h"

#include <cstring>

#include <blake3.h>

#include "common/base/bytes.h"

namespace sightline::envelope {

namespace {

// BLAKE3's context string for the derived key. If a release changes it, processes of this release
// and of earlier ones reject each other's messages.
constexpr const char* kKeyContext = "sightline 2026 messages between replicas: tag";

// Hashes the length before the bytes. Without it, two fields could be the same bytes as two other
// fields, for example "ab" + "c" and "a" + "bc".
void update_field(blake3_hasher& hasher, std::string_view field) {
  std::array<std::uint8_t, 8> length{};
  store_le64(length.data(), field.size());
  blake3_hasher_update(&hasher, length.data(), length.size());
  blake3_hasher_update(&hasher, field.data(), field.size());
}

// Takes the same time for every pair of tags. A sender can therefore not measure how many bytes of
// a forged tag were right.
bool equal(const std::uint8_t* one, const std::uint8_t* other, std::size_t bytes) {
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    difference = static_cast<std::uint8_t>(difference | (one[i] ^ other[i]));
  }
  return difference == 0;
}

}  // namespace

std::string_view name_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::TooShort:
      return "too-short";
    case Refusal::OtherVersion:
      return "other-version";
    case Refusal::WrongTag:
      return "wrong-tag";
  }
  return "";
}

Sealer::Sealer(const contract::IdentityKey& key, const SealScope& scope) {
  blake3_hasher hasher;
  blake3_hasher_init_derive_key(&hasher, kKeyContext);
  blake3_hasher_update(&hasher, key.bytes.data(), key.bytes.size());
  update_field(hasher, scope.scope);
  update_field(hasher, scope.revision);
  update_field(hasher, scope.fingerprint);
  blake3_hasher_finalize(&hasher, tag_key_.data(), tag_key_.size());
}

Sealer::Tag Sealer::tag_of(std::string_view subject, std::string_view versioned_payload) const {
  blake3_hasher hasher;
  blake3_hasher_init_keyed(&hasher, tag_key_.data());
  update_field(hasher, subject);
  blake3_hasher_update(&hasher, versioned_payload.data(), versioned_payload.size());
  Tag tag{};
  blake3_hasher_finalize(&hasher, tag.data(), tag.size());
  return tag;
}

std::string Sealer::seal(std::string_view subject, std::string_view payload,
                         std::uint8_t version) const {
  std::string bytes;
  bytes.reserve(payload.size() + kSealBytes);
  bytes.push_back(static_cast<char>(version));
  bytes.append(payload);
  const Tag tag = tag_of(subject, bytes);
  bytes.append(text_of(tag));
  return bytes;
}

Opened Sealer::open(std::string_view subject, std::string_view bytes, std::uint8_t version) const {
  if (bytes.empty()) return Refusal::TooShort;
  // The version is checked before the length, because messages of another version may have another
  // form.
  if (static_cast<std::uint8_t>(bytes.front()) != version) return Refusal::OtherVersion;
  if (bytes.size() < kSealBytes) return Refusal::TooShort;
  const auto versioned = bytes.substr(0, bytes.size() - kTagBytes);
  // The payload is returned only after its tag was checked. No reader parses bytes of an
  // unauthenticated sender.
  const Tag tag = tag_of(subject, versioned);
  const auto given = bytes_of(bytes.substr(versioned.size()));
  if (!equal(tag.data(), given.data(), kTagBytes)) return Refusal::WrongTag;
  return versioned.substr(1);
}

std::string Sealer::proof(std::string_view subject, std::string_view text) const {
  return to_hex(tag_of(subject, text));
}

bool Sealer::proves(std::string_view subject, std::string_view text, std::string_view proof) const {
  const std::string right = this->proof(subject, text);
  return proof.size() == right.size() &&
         equal(bytes_of(right).data(), bytes_of(proof).data(), right.size());
}

}  // namespace sightline::envelope
