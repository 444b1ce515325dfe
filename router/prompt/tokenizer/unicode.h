// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sightline::tokenizer {

// The classes of characters that the pre-tokenizer's pattern distinguishes. Every character has
// exactly one class.
enum class CharClass : std::uint8_t {
  Other,    // [^\s\p{L}\p{N}]
  Letter,   // \p{L}
  Number,   // \p{N}
  Blank,    // \s without the newlines
  Newline,  // [\r\n]
};

// The parts of an entry of char_table(): a CharClass in the low bits, and two flags for NFC.
inline constexpr std::uint8_t kClassMask = 7;
// NFC may change or move this character. A text without these characters is in NFC.
inline constexpr std::uint8_t kNfcSuspect = 8;
// NFC may join this character with the one before it: no cut is safe here.
inline constexpr std::uint8_t kNfcJoins = 16;
inline constexpr std::uint32_t kCodePoints = 0x110000;

// Returns a table of kCodePoints entries, one per code point. Letters, numbers and white space
// follow Unicode 16.0, as the regex engine of Hugging Face tokenizers 0.23.3 does. NFC follows
// Unicode 9.0, as the normalizer of the same library does. Both were measured on every code point.
//
// The first call builds the table. Any thread may call it.
const std::uint8_t* char_table();

// A character and its size in UTF-8.
struct Decoded {
  std::uint32_t code_point;
  std::uint32_t size_bytes;
};

// Decodes the character at p. The text must be valid UTF-8.
inline Decoded decode_utf8(const char* p) {
  const auto byte = [p](int i) {
    return static_cast<std::uint32_t>(static_cast<std::uint8_t>(p[i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {((lead & 0x1FU) << 6U) | (byte(1) & 0x3FU), 2};
  if (lead < 0xF0) {
    return {((lead & 0x0FU) << 12U) | ((byte(1) & 0x3FU) << 6U) | (byte(2) & 0x3FU), 3};
  }
  return {((lead & 0x07U) << 18U) | ((byte(1) & 0x3FU) << 12U) | ((byte(2) & 0x3FU) << 6U) |
              (byte(3) & 0x3FU),
          4};
}

// Replaces `out` by the NFC form of valid UTF-8. Returns false if the text is in NFC already. `out`
// is then not valid. The time is linear, except for the sorting of runs of combining marks.
bool normalize_nfc(std::string_view text, std::string& out);

}  // namespace sightline::tokenizer
