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

// The form of every message between the processes of a deployment but announcements of members:
// one byte of version, the payload, a tag that only holders of the deployment's key can make.
namespace sightline::envelope {

// Counted up whenever a reader of the last version could misread a message: of questions to agents
// and on lists, which say since the second that they are new, and of everything else.
inline constexpr std::uint8_t kAskVersion = 2;
inline constexpr std::uint8_t kVersion = 1;
// What announcements say that a process reads.
inline constexpr std::uint8_t kNewestVersion = kAskVersion;
inline constexpr std::size_t kTagBytes = 16;
// What seal() adds to a payload.
inline constexpr std::size_t kSealBytes = 1 + kTagBytes;
inline constexpr std::size_t kProofDigits = 2 * kTagBytes;

// What processes must agree on, beside the key, for the words of one to mean anything to another.
struct SealScope {
  std::string scope;     // "namespace/name"
  std::string revision;  // --revision
  // Digest of what else makes block keys incomparable: the model's files and the served name.
  std::string fingerprint;
};

enum class Refusal : std::uint8_t {
  TooShort,      // no whole envelope
  OtherVersion,  // made by a build whose messages this one does not read
  WrongTag,      // forged, damaged, sent under another subject, or of another key or scope
};

// As a metric's label: "too-short", "other-version", "wrong-tag".
std::string_view name_of(Refusal refusal);

// A view of the opened bytes, or why they are not read.
using Opened = std::variant<std::string_view, Refusal>;

// Seals and opens messages: the tag is BLAKE3, keyed and cut to 16 bytes, over subject, version and
// payload. Its key is derived from the deployment's and from the scope, so who lacks one of them
// neither writes nor is read. Says nothing of order or age: what an old message may do is up to
// what it says.
// Thread safety: immutable.
class Sealer {
 public:
  Sealer(const contract::IdentityKey& key, const SealScope& scope);

  // subject: the one that it is sent under, on which readers hear it.
  [[nodiscard]] std::string seal(std::string_view subject, std::string_view payload,
                                 std::uint8_t version = kVersion) const;
  // Bytes of another version are OtherVersion.
  [[nodiscard]] Opened open(std::string_view subject, std::string_view bytes,
                            std::uint8_t version = kVersion) const;
  // The tag alone, of a text that stays readable for all: kProofDigits hexadecimal digits.
  [[nodiscard]] std::string proof(std::string_view subject, std::string_view text) const;
  [[nodiscard]] bool proves(std::string_view subject, std::string_view text,
                            std::string_view proof) const;

 private:
  using Tag = std::array<std::uint8_t, kTagBytes>;
  [[nodiscard]] Tag tag_of(std::string_view subject, std::string_view versioned_payload) const;

  std::array<std::uint8_t, 32> tag_key_{};
};

}  // namespace sightline::envelope
