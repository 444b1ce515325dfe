// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"

namespace sightline::wire {

// An integer of any width as msgpack carries it: bits is the two's complement of the value, so a
// plain unsigned value where negative is false.
struct MsgpackInteger {
  std::uint64_t bits = 0;
  bool negative = false;
};

// Reads msgpack (the specification of 2013, as msgspec writes it) from front to back.
//
// Nothing is believed before it is seen: a length or count larger than the bytes that are left is
// refused when it is read. Every read returns nothing when the next value is of another kind or
// the bytes end; the position is then unspecified, so give up. Views are into the bytes, which
// outlive the reader.
// Thread safety: none.
class MsgpackReader {
 public:
  enum class Kind : std::uint8_t {
    End,  // no bytes left
    Nil,
    Boolean,
    Integer,
    Float,
    Text,
    Binary,
    Array,
    Map,
    Other,  // extension types and the reserved byte
  };

  explicit MsgpackReader(ByteView bytes) : bytes_(bytes) {}

  // Kind of the next value, which is not consumed.
  [[nodiscard]] Kind peek() const;
  [[nodiscard]] bool at_end() const { return position_ == bytes_.size(); }

  bool nil();
  std::optional<MsgpackInteger> integer();
  // Integers too, as the writer may shorten whole numbers.
  std::optional<double> number();
  std::optional<std::string_view> text();
  std::optional<ByteView> binary();
  // Number of elements or of pairs that follow; at most the bytes left (half of them for pairs).
  std::optional<std::size_t> array();
  std::optional<std::size_t> map();
  // An array of so many numbers from 0 on; those beyond 32 bits are read as the largest.
  std::optional<std::vector<std::uint32_t>> counts(std::size_t size);

  // Consumes the next value whole, whatever it is, and returns its bytes. Nothing when it is cut
  // short, holds more than nesting_max levels of arrays and maps, or the reserved byte.
  std::optional<ByteView> skip(std::size_t nesting_max);

 private:
  [[nodiscard]] std::size_t left() const { return bytes_.size() - position_; }
  std::optional<std::uint64_t> big_endian(std::size_t width);
  std::optional<ByteView> take(std::uint64_t length);
  std::optional<ByteView> sized(std::size_t length_width);
  // The number of values inside the next one; leaves and their content are consumed.
  std::optional<std::uint64_t> open();
  std::optional<std::uint64_t> open_wide(std::uint8_t tag);
  // Consumes at most so many values of fixed length, and returns how many there were.
  std::uint64_t skip_fixed(std::uint64_t count_max);

  ByteView bytes_;
  std::size_t position_ = 0;
};

// Nil, or an array of what is empty: says nothing. No deeper nested than this.
bool is_empty_value(ByteView value, std::size_t nesting_max);

}  // namespace sightline::wire
