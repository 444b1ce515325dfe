// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sightline {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

// Views of the same memory, without a copy. The source must outlive them.
inline ByteView bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lower-case hexadecimal, two digits a byte, without a prefix.
std::string to_hex(ByteView bytes);
// 16 lower-case digits, the highest first.
std::string to_hex(std::uint64_t value);
// Accepts both cases. Returns nothing if the length is odd or a digit is not hexadecimal.
std::optional<Bytes> from_hex(std::string_view text);

// These read an integer in big-endian (be) or little-endian (le) order. They check no bounds: the
// caller does.
constexpr std::uint16_t load_be16(const std::uint8_t* p) {
  return static_cast<std::uint16_t>((p[0] << 8U) | p[1]);
}
constexpr std::uint32_t load_be32(const std::uint8_t* p) {
  return (std::uint32_t{load_be16(p)} << 16U) | load_be16(p + 2);
}
constexpr std::uint64_t load_be64(const std::uint8_t* p) {
  return (std::uint64_t{load_be32(p)} << 32U) | load_be32(p + 4);
}
constexpr std::uint16_t load_le16(const std::uint8_t* p) {
  return static_cast<std::uint16_t>((p[1] << 8U) | p[0]);
}
constexpr std::uint32_t load_le32(const std::uint8_t* p) {
  return (std::uint32_t{load_le16(p + 2)} << 16U) | load_le16(p);
}
constexpr std::uint64_t load_le64(const std::uint8_t* p) {
  return (std::uint64_t{load_le32(p + 4)} << 32U) | load_le32(p);
}
// These write 8 bytes. The caller checks the bounds.
constexpr void store_be64(std::uint8_t* p, std::uint64_t value) {
  for (int i = 7; i >= 0; --i, value >>= 8U) p[i] = static_cast<std::uint8_t>(value);
}
constexpr void store_le64(std::uint8_t* p, std::uint64_t value) {
  for (int i = 0; i < 8; ++i, value >>= 8U) p[i] = static_cast<std::uint8_t>(value);
}

// True for well-formed UTF-8: no surrogates, nothing above U+10FFFF, no overlong forms.
bool is_utf8(std::string_view text);
// The longest beginning of at most bytes_max bytes in valid UTF-8, maybe empty. For short
// texts: it validates each candidate length in full.
std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max);

}  // namespace sightline
