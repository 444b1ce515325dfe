// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/wire/msgpack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

namespace sightline::wire {

namespace {

// First bytes of values, from the msgpack specification.
constexpr std::uint8_t kNil = 0xc0;
constexpr std::uint8_t kReserved = 0xc1;
constexpr std::uint8_t kFalse = 0xc2;
constexpr std::uint8_t kTrue = 0xc3;
constexpr std::uint8_t kBinary8 = 0xc4;
constexpr std::uint8_t kBinary32 = 0xc6;
constexpr std::uint8_t kExtension8 = 0xc7;
constexpr std::uint8_t kExtension32 = 0xc9;
constexpr std::uint8_t kFloat32 = 0xca;
constexpr std::uint8_t kFloat64 = 0xcb;
constexpr std::uint8_t kUnsigned8 = 0xcc;
constexpr std::uint8_t kSigned8 = 0xd0;
constexpr std::uint8_t kSigned64 = 0xd3;
constexpr std::uint8_t kFixedExtension1 = 0xd4;
constexpr std::uint8_t kFixedExtension16 = 0xd8;
constexpr std::uint8_t kText8 = 0xd9;
constexpr std::uint8_t kArray16 = 0xdc;
constexpr std::uint8_t kMap16 = 0xde;

constexpr bool is_fixed_integer(std::uint8_t tag) { return tag <= 0x7f || tag >= 0xe0; }
constexpr bool is_fixed_map(std::uint8_t tag) { return tag >= 0x80 && tag <= 0x8f; }
constexpr bool is_fixed_array(std::uint8_t tag) { return tag >= 0x90 && tag <= 0x9f; }
constexpr bool is_fixed_text(std::uint8_t tag) { return tag >= 0xa0 && tag <= 0xbf; }

// Returns the bytes of the integer or length after a tag. The tags of a family double in width.
constexpr std::size_t width_of(std::uint8_t tag, std::uint8_t narrowest, std::size_t first = 1) {
  return first << static_cast<unsigned>(tag - narrowest);
}

// Returns, for each tag, the size of its value with the tag, if the tag alone determines it. That
// is so for numbers, booleans and nil. 0 for all others.
constexpr std::array<std::uint8_t, 256> fixed_bytes() {
  std::array<std::uint8_t, 256> bytes{};
  for (std::size_t tag = 0; tag < bytes.size(); ++tag) {
    if (is_fixed_integer(static_cast<std::uint8_t>(tag))) bytes[tag] = 1;
  }
  for (const auto tag : {kNil, kFalse, kTrue}) bytes[tag] = 1;
  for (std::size_t power = 0; power < 4; ++power) {
    bytes[kUnsigned8 + power] = bytes[kSigned8 + power] =
        static_cast<std::uint8_t>(1U + (1U << power));
  }
  bytes[kFloat32] = 5;
  bytes[kFloat64] = 9;
  return bytes;
}
constexpr auto kFixedBytes = fixed_bytes();

constexpr MsgpackInteger sign_extend(std::uint64_t bits, std::size_t width) {
  const auto shift = static_cast<unsigned>(64 - 8 * width);
  const auto value = static_cast<std::int64_t>(bits << shift) >> shift;
  return {.bits = static_cast<std::uint64_t>(value), .negative = value < 0};
}

}  // namespace

MsgpackReader::Kind MsgpackReader::peek() const {
  if (at_end()) return Kind::End;
  const auto tag = bytes_[position_];
  if (is_fixed_integer(tag)) return Kind::Integer;
  if (is_fixed_map(tag) || tag >= kMap16) return Kind::Map;
  if (is_fixed_array(tag) || tag >= kArray16) return Kind::Array;
  if (is_fixed_text(tag) || tag >= kText8) return Kind::Text;
  if (tag == kNil) return Kind::Nil;
  if (tag == kFalse || tag == kTrue) return Kind::Boolean;
  if (tag >= kBinary8 && tag <= kBinary32) return Kind::Binary;
  if (tag == kFloat32 || tag == kFloat64) return Kind::Float;
  if (tag >= kUnsigned8 && tag <= kSigned64) return Kind::Integer;
  return Kind::Other;
}

// Loads eight bytes and shifts, which is faster than single bytes. Near the end of the payload
// fewer than eight bytes are left.
std::optional<std::uint64_t> MsgpackReader::big_endian(std::size_t width) {
  if (left() < width) return std::nullopt;
  std::uint64_t value = 0;
  if (left() >= sizeof value) {
    std::memcpy(&value, bytes_.data() + position_, sizeof value);
    value = __builtin_bswap64(value) >> (64 - 8 * width);
  } else {
    for (std::size_t i = 0; i < width; ++i) value = (value << 8U) | bytes_[position_ + i];
  }
  position_ += width;
  return value;
}

std::optional<ByteView> MsgpackReader::take(std::uint64_t length) {
  if (left() < length) return std::nullopt;
  const auto view = bytes_.subspan(position_, static_cast<std::size_t>(length));
  position_ += view.size();
  return view;
}

std::optional<ByteView> MsgpackReader::sized(std::size_t length_width) {
  const auto length = big_endian(length_width);
  if (!length) return std::nullopt;
  return take(*length);
}

bool MsgpackReader::nil() {
  if (peek() != Kind::Nil) return false;
  ++position_;
  return true;
}

std::optional<MsgpackInteger> MsgpackReader::integer() {
  if (at_end()) return std::nullopt;
  const auto tag = bytes_[position_++];
  if (tag <= 0x7f) return MsgpackInteger{.bits = tag};
  if (tag >= 0xe0) return sign_extend(tag, 1);
  if (tag < kUnsigned8 || tag > kSigned64) return std::nullopt;
  const bool is_signed = tag >= kSigned8;
  const auto width = width_of(tag, is_signed ? kSigned8 : kUnsigned8);
  const auto bits = big_endian(width);
  if (!bits) return std::nullopt;
  if (is_signed) return sign_extend(*bits, width);
  return MsgpackInteger{.bits = *bits};
}

std::optional<double> MsgpackReader::number() {
  if (peek() == Kind::Integer) {
    const auto value = integer();
    if (!value) return std::nullopt;
    return value->negative ? static_cast<double>(static_cast<std::int64_t>(value->bits))
                           : static_cast<double>(value->bits);
  }
  if (peek() != Kind::Float) return std::nullopt;
  if (bytes_[position_++] == kFloat32) {
    const auto bits = big_endian(4);
    if (!bits) return std::nullopt;
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(*bits)));
  }
  const auto bits = big_endian(8);
  if (!bits) return std::nullopt;
  return std::bit_cast<double>(*bits);
}

std::optional<std::string_view> MsgpackReader::text() {
  if (peek() != Kind::Text) return std::nullopt;
  const auto tag = bytes_[position_++];
  const auto bytes = is_fixed_text(tag) ? take(tag & 0x1fU) : sized(width_of(tag, kText8));
  if (!bytes) return std::nullopt;
  return text_of(*bytes);
}

std::optional<ByteView> MsgpackReader::binary() {
  if (peek() != Kind::Binary) return std::nullopt;
  const auto tag = bytes_[position_++];
  return sized(width_of(tag, kBinary8));
}

std::optional<std::size_t> MsgpackReader::array() {
  if (peek() != Kind::Array) return std::nullopt;
  const auto tag = bytes_[position_++];
  const auto count = is_fixed_array(tag) ? std::optional<std::uint64_t>(tag & 0x0fU)
                                         : big_endian(width_of(tag, kArray16, 2));
  // Each element takes at least one byte. This check also bounds what callers allocate for it.
  if (!count || *count > left()) return std::nullopt;
  return static_cast<std::size_t>(*count);
}

std::optional<std::size_t> MsgpackReader::map() {
  if (peek() != Kind::Map) return std::nullopt;
  const auto tag = bytes_[position_++];
  const auto count = is_fixed_map(tag) ? std::optional<std::uint64_t>(tag & 0x0fU)
                                       : big_endian(width_of(tag, kMap16, 2));
  // Each pair takes at least two bytes.
  if (!count || *count > left() / 2) return std::nullopt;
  return static_cast<std::size_t>(*count);
}

// Extensions: their length, one byte of type, their bytes.
std::optional<std::uint64_t> MsgpackReader::open_wide(std::uint8_t tag) {
  if (tag == kReserved) return std::nullopt;
  ++position_;
  std::optional<std::uint64_t> length = 0;  // nil and booleans have no more bytes
  if (tag >= kFixedExtension1 && tag <= kFixedExtension16) {
    length = 1 + width_of(tag, kFixedExtension1);
  } else if (tag >= kExtension8 && tag <= kExtension32) {
    length = big_endian(width_of(tag, kExtension8));
    if (length) ++*length;
  }
  if (!length || !take(*length)) return std::nullopt;
  return 0;
}

std::optional<std::uint64_t> MsgpackReader::open() {
  const auto leaf = [](const auto& value) {
    return value ? std::optional<std::uint64_t>(0) : std::nullopt;
  };
  switch (peek()) {
    case Kind::End:
      return std::nullopt;
    case Kind::Integer:
      return leaf(integer());
    case Kind::Float:
      return leaf(number());
    case Kind::Text:
      return leaf(text());
    case Kind::Binary:
      return leaf(binary());
    case Kind::Array:
      return array();
    case Kind::Map: {
      const auto pairs = map();
      if (!pairs) return std::nullopt;
      return 2 * *pairs;
    }
    case Kind::Nil:
    case Kind::Boolean:
    case Kind::Other:
      break;
  }
  return open_wide(bytes_[position_]);
}

std::uint64_t MsgpackReader::skip_fixed(std::uint64_t count_max) {
  std::uint64_t count = 0;
  while (count < count_max && !at_end()) {
    const std::size_t bytes = kFixedBytes[bytes_[position_]];
    if (bytes == 0 || bytes > left()) break;
    position_ += bytes;
    ++count;
  }
  return count;
}

std::optional<ByteView> MsgpackReader::skip(std::size_t nesting_max) {
  const auto begin = position_;
  // Keeps its own stack, which nesting_max bounds. Recursion would let a payload exhaust the
  // thread's.
  std::vector<std::uint64_t> open_counts = {1};
  while (!open_counts.empty()) {
    // Most of what engines send is arrays of numbers.
    open_counts.back() -= skip_fixed(open_counts.back());
    if (open_counts.back() == 0) {
      open_counts.pop_back();
      continue;
    }
    --open_counts.back();
    const auto inside = open();
    if (!inside) return std::nullopt;
    if (*inside == 0) continue;
    if (open_counts.size() > nesting_max) return std::nullopt;
    open_counts.push_back(*inside);
  }
  return bytes_.subspan(begin, position_ - begin);
}

std::optional<std::vector<std::uint32_t>> MsgpackReader::counts(std::size_t size) {
  const auto count = peek() == Kind::Array ? array() : std::nullopt;
  if (!count || *count != size) return std::nullopt;
  std::vector<std::uint32_t> all;
  // The payload has at least `size` bytes, as array() has checked.
  all.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto value = integer();
    if (!value || value->negative) return std::nullopt;
    constexpr std::uint64_t kLargest = std::numeric_limits<std::uint32_t>::max();
    all.push_back(static_cast<std::uint32_t>(std::min(value->bits, kLargest)));
  }
  return all;
}

bool is_empty_value(ByteView value, std::size_t nesting_max) {
  MsgpackReader reader(value);
  if (reader.nil()) return true;
  const auto count = reader.peek() == MsgpackReader::Kind::Array ? reader.array() : std::nullopt;
  if (!count) return false;
  for (std::size_t i = 0; i < *count; ++i) {
    // skip() refuses deep nesting, so the recursion is bounded too.
    const auto element = reader.skip(nesting_max);
    if (!element || !is_empty_value(*element, nesting_max)) return false;
  }
  return true;
}

}  // namespace sightline::wire
