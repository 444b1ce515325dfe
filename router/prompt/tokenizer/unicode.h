// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sightline::tokenizer {

// What the pre-tokenizer's pattern asks of a character. Every character has exactly one class.
enum class CharClass : std::uint8_t {
  Other,    // [^\s\p{L}\p{N}]
  Letter,   // \p{L}
  Number,   // \p{N}
  Blank,    // \s without the newlines
  Newline,  // [\r\n]
};

// An entry of char_table(): a CharClass in the low bits, and what NFC asks.
inline constexpr std::uint8_t kClassMask = 7;
// NFC may change this character, or move it: a text without such characters is NFC.
inline constexpr std::uint8_t kNfcSuspect = 8;
// NFC may join this character with the one before it: no cut is safe here.
inline constexpr std::uint8_t kNfcJoins = 16;
inline constexpr std::uint32_t kCodePoints = 0x110000;

// One entry per code point, kCodePoints of them. Letters, numbers and white space are those of
// Unicode 16.0 (the regex engine of Hugging Face tokenizers 0.23.3), NFC is that of Unicode 9.0
// (the normalizer in the same library); both measured on every code point. Built on first use;
// any thread.
const std::uint8_t* char_table();

struct Decoded {
  std::uint32_t code_point;
  std::uint32_t size_bytes;
};

// The character that starts at p; the text must be valid UTF-8.
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

// Writes the NFC form of valid UTF-8 to out (cleared first). False, and out is of no use, if text
// is NFC already. Linear but for sorting runs of combining marks.
bool normalize_nfc(std::string_view text, std::string& out);

}  // namespace sightline::tokenizer
