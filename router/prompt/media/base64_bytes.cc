// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/base64_bytes.h"

#include <array>
#include <string>

#include "common/base/check.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace sightline::media {
namespace {

constexpr std::uint8_t kBad = 0xFF;

// The value of each digit. Bytes outside of the alphabet have kBad.
constexpr std::array<std::uint8_t, 256> digit_table() {
  std::array<std::uint8_t, 256> table{};
  table.fill(kBad);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    table[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return table;
}
constexpr std::array<std::uint8_t, 256> kDigits = digit_table();

Error not_base64(std::size_t position) {
  return client_error(
      ErrorCode::InvalidArgument,
      "the payload is not base64: unexpected character at position " + std::to_string(position));
}

#if defined(__AVX2__)
// Decodes 32 characters to 24 bytes per step. The algorithm is by W. Muła and D. Lemire, "Faster
// Base64 Encoding and Decoding using AVX2 Instructions" (2018). Returns the number of characters
// decoded.
//
// It stops before a step with a character outside of the alphabet. The caller then finds its
// position. It also stops when a step would leave fewer than 16 characters. A step stores 8 bytes
// more than it decodes, and `out` must have room for them.
std::size_t decode_wide(std::string_view text, std::uint8_t* out) {
  const __m256i low_table =
      _mm256_setr_epi8(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1A, 0x1B,
                       0x1B, 0x1B, 0x1A, 0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
                       0x13, 0x1A, 0x1B, 0x1B, 0x1B, 0x1A);
  const __m256i high_table =
      _mm256_setr_epi8(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10,
                       0x10, 0x10, 0x10, 0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10,
                       0x10, 0x10, 0x10, 0x10, 0x10, 0x10);
  const __m256i shift_table =
      _mm256_setr_epi8(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 19, 4, -65,
                       -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m256i slash = _mm256_set1_epi8(0x2F);
  const __m256i order = _mm256_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, 2,
                                         1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
  std::size_t done = 0;
  for (; text.size() - done >= 48; done += 32, out += 24) {
    __m256i step = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text.data() + done));
    const __m256i high_nibbles = _mm256_and_si256(_mm256_srli_epi32(step, 4), slash);
    const __m256i low = _mm256_shuffle_epi8(low_table, _mm256_and_si256(step, slash));
    const __m256i high = _mm256_shuffle_epi8(high_table, high_nibbles);
    if (_mm256_testz_si256(low, high) == 0) break;
    const __m256i is_slash = _mm256_cmpeq_epi8(step, slash);
    const __m256i shift = _mm256_shuffle_epi8(shift_table, _mm256_add_epi8(is_slash, high_nibbles));
    step = _mm256_add_epi8(step, shift);
    const __m256i pairs = _mm256_maddubs_epi16(step, _mm256_set1_epi32(0x01400140));
    const __m256i groups = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00011000));
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(groups, order), lanes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), packed);
  }
  return done;
}
#else
std::size_t decode_wide(std::string_view, std::uint8_t*) { return 0; }
#endif

}  // namespace

Result<std::size_t> decode_base64(std::string_view text, std::span<std::uint8_t> out) {
  SL_CHECK(out.size() >= base64_bytes_max(text.size()));
  std::size_t digits = text.size();
  // At most two characters are padding. A third '=' is then an invalid digit, as in the engine.
  while (digits > 0 && text.size() - digits < 2 && text[digits - 1] == '=') --digits;
  const std::size_t padding = text.size() - digits;

  std::size_t at = decode_wide(text.substr(0, digits), out.data());
  std::size_t written = at / 4 * 3;
  std::uint32_t group = 0;
  for (; at < digits; ++at) {
    const std::uint8_t digit = kDigits[static_cast<std::uint8_t>(text[at])];
    if (digit == kBad) return not_base64(at);
    group = group << 6U | digit;
    // Four digits are complete after each index with the remainder 3.
    if (at % 4 != 3) continue;
    out[written++] = static_cast<std::uint8_t>(group >> 16U);
    out[written++] = static_cast<std::uint8_t>(group >> 8U);
    out[written++] = static_cast<std::uint8_t>(group);
    group = 0;
  }
  // The length is checked last, because an error about a character is more helpful.
  if (text.size() % 4 != 0) {
    return client_error(ErrorCode::InvalidArgument,
                        "the payload is not base64: its length, " + std::to_string(text.size()) +
                            ", is not a multiple of 4 (padding with '=' is required)");
  }
  // The last digits may contain bits that belong to no byte. The engine ignores them too.
  if (padding == 2) out[written++] = static_cast<std::uint8_t>(group >> 4U);
  if (padding == 1) {
    out[written++] = static_cast<std::uint8_t>(group >> 10U);
    out[written++] = static_cast<std::uint8_t>(group >> 2U);
  }
  return written;
}

}  // namespace sightline::media
