// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/contract/identity_key.h"

// The form of every message between the processes of a deployment, except announcements of members:
// one byte of version, the payload, and a tag. Only holders of the deployment's key can make the
// tag.
namespace sightline::envelope {

// A version increases whenever a reader of the last version could misread a message. kAskVersion is
// for requests to agents and for requests about worker lists. Since version 2 these requests carry
// a proof that they are new. kVersion is for all other messages.
inline constexpr std::uint8_t kAskVersion = 2;
inline constexpr std::uint8_t kVersion = 1;
// The version that a process announces as the one that it reads.
inline constexpr std::uint8_t kNewestVersion = kAskVersion;
// The tag is the first 16 bytes of BLAKE3's output.
inline constexpr std::size_t kTagBytes = 16;
// What seal() adds to a payload, in bytes: the version and the tag.
inline constexpr std::size_t kSealBytes = 1 + kTagBytes;
// The length of proof(): two hexadecimal digits for each byte of the tag.
inline constexpr std::size_t kProofDigits = 2 * kTagBytes;

// What two processes must agree on, beside the key, to exchange messages. If one field differs,
// their tags differ.
struct SealScope {
  // The scope of the deployment, "namespace/name" (`--scope`).
  std::string scope;
  // The revision of the deployment (`--revision`).
  std::string revision;
  // Digest of everything else that makes block keys incomparable: the model's files and the first
  // served name.
  std::string fingerprint;
};

// Why open() rejected a message.
enum class Refusal : std::uint8_t {
  // The bytes are no whole envelope.
  TooShort,
  // The sender is a build whose messages this build does not read.
  OtherVersion,
  // The message is forged, damaged or from another subject. Or its sender has another key or scope.
  WrongTag,
};

// The refusal as the value of a metric's label: "too-short", "other-version" or "wrong-tag".
std::string_view name_of(Refusal refusal);

// The payload as a view of the opened bytes, or the reason why they are rejected.
using Opened = std::variant<std::string_view, Refusal>;

// Seals and opens messages. The tag is keyed BLAKE3, cut to 16 bytes, over subject, version and
// payload. Its key is derived from the deployment's key and from the scope. A process that lacks
// one of them can neither write accepted messages nor read any.
// The tag does not prove order or age. Each message type must limit by its content what an old
// message can do.
// Thread safety: immutable.
class Sealer {
 public:
  // Copies what it needs from both. The key is the deployment's identity key.
  Sealer(const contract::IdentityKey& key, const SealScope& scope);

  // Returns the envelope of the payload. The subject is the one on which the message is sent and on
  // which readers receive it.
  [[nodiscard]] std::string seal(std::string_view subject, std::string_view payload,
                                 std::uint8_t version = kVersion) const;
  // Returns the payload, which points into `bytes`. Bytes of another version give OtherVersion. The
  // tag is compared in constant time.
  [[nodiscard]] Opened open(std::string_view subject, std::string_view bytes,
                            std::uint8_t version = kVersion) const;
  // Returns only the tag, as kProofDigits lower-case hexadecimal digits. It authenticates a text
  // that stays readable for everyone.
  [[nodiscard]] std::string proof(std::string_view subject, std::string_view text) const;
  // Returns whether `proof` is the proof of this text under this subject. Compares in constant
  // time.
  [[nodiscard]] bool proves(std::string_view subject, std::string_view text,
                            std::string_view proof) const;

 private:
  using Tag = std::array<std::uint8_t, kTagBytes>;
  [[nodiscard]] Tag tag_of(std::string_view subject, std::string_view versioned_payload) const;

  std::array<std::uint8_t, 32> tag_key_{};
};

}  // namespace sightline::envelope
