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

// An integer of any width that msgpack allows. `bits` is the two's complement of the value. If
// `negative` is false, it is the plain unsigned value.
struct MsgpackInteger {
  std::uint64_t bits = 0;
  bool negative = false;
};

// Reads msgpack (the specification of 2013, as msgspec writes it) from front to back.
//
// The reader trusts no length or count. It refuses one that is larger than the remaining bytes when
// it reads it. A read returns an empty value if the next value is of another kind or if the bytes
// end. The position is then unspecified, and the caller must stop. Returned views point into the
// bytes, which must outlive the reader.
// Thread safety: one thread at a time.
class MsgpackReader {
 public:
  enum class Kind : std::uint8_t {
    // No bytes are left.
    End,
    Nil,
    Boolean,
    Integer,
    Float,
    Text,
    Binary,
    Array,
    Map,
    // Extension types and the reserved byte.
    Other,
  };

  explicit MsgpackReader(ByteView bytes) : bytes_(bytes) {}

  // Returns the kind of the next value, without consuming it.
  [[nodiscard]] Kind peek() const;
  [[nodiscard]] bool at_end() const { return position_ == bytes_.size(); }

  // Each of these consumes the next value if it has the right kind. nil() returns whether it did.
  bool nil();
  std::optional<MsgpackInteger> integer();
  // Accepts integers too, because the writer may shorten whole numbers.
  std::optional<double> number();
  std::optional<std::string_view> text();
  std::optional<ByteView> binary();
  // Return the number of elements or pairs that follow. It is at most the number of remaining
  // bytes, for pairs at most half of it.
  std::optional<std::size_t> array();
  std::optional<std::size_t> map();
  // Reads an array of `size` numbers from 0 on. A number beyond 32 bits is read as the largest
  // 32-bit number.
  std::optional<std::vector<std::uint32_t>> counts(std::size_t size);

  // Consumes the next value whole, of any kind, and returns its bytes. Returns empty if the value
  // is cut short, has the reserved byte, or nests more than nesting_max arrays and maps.
  std::optional<ByteView> skip(std::size_t nesting_max);

 private:
  // Returns the number of bytes that are not consumed.
  [[nodiscard]] std::size_t left() const { return bytes_.size() - position_; }
  // Reads an unsigned integer of 1, 2, 4 or 8 bytes.
  std::optional<std::uint64_t> big_endian(std::size_t width);
  // Consumes `length` bytes.
  std::optional<ByteView> take(std::uint64_t length);
  // Reads a length of that many bytes, then consumes as many bytes as it says.
  std::optional<ByteView> sized(std::size_t length_width);
  // Opens the next value and returns how many values are inside it. A value without values inside
  // is consumed whole, and the result is 0.
  std::optional<std::uint64_t> open();
  std::optional<std::uint64_t> open_wide(std::uint8_t tag);
  // Consumes values of fixed length, at most count_max, and returns how many it consumed.
  std::uint64_t skip_fixed(std::uint64_t count_max);

  ByteView bytes_;
  std::size_t position_ = 0;
};

// Returns whether a value has no content: nil, or an array of values without content. Nesting
// deeper than nesting_max counts as content.
bool is_empty_value(ByteView value, std::size_t nesting_max);

}  // namespace sightline::wire
