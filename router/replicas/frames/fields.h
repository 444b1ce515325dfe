// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/check.h"

#include "router/replicas/frames/stream_codec.h"

// The fields of which binary messages consist: these messages, and the ones of router/replicas/load
// and lists_exchange.
// Thread safety: one thread at a time.
namespace sightline::frames {

using keys::BlockKey;

// Appends fields to a message. The fields have no tags: writer and reader must agree on their
// order.
class FieldWriter {
 public:
  // Little-endian, sizeof(T) bytes.
  template <class T>
  void integer(T value) {
    static_assert(std::is_unsigned_v<T>);
    std::array<std::uint8_t, 8> bytes{};
    store_le64(bytes.data(), value);
    out_.append(reinterpret_cast<const char*>(bytes.data()), sizeof(T));
  }
  // One byte, 0 or 1.
  void flag(bool value) { integer<std::uint8_t>(value ? 1 : 0); }
  // A 16-bit length, then the bytes. A longer value than bytes_max is a bug.
  void text(std::string_view value, std::size_t bytes_max) {
    SL_CHECK(value.size() <= bytes_max);
    integer(static_cast<std::uint16_t>(value.size()));
    out_.append(value);
  }
  // A text of at most kNameBytesMax bytes.
  void name(std::string_view value) { text(value, kNameBytesMax); }
  // A flag, then the value. An absent value is sent as 0, so the field has a fixed size.
  template <class T>
  void optional(const std::optional<T>& value) {
    flag(value.has_value());
    integer<T>(value.value_or(T{}));
  }
  // The same for a time, in milliseconds.
  void optional_ms(const std::optional<std::chrono::milliseconds>& value) {
    flag(value.has_value());
    integer(value ? static_cast<std::uint64_t>(value->count()) : std::uint64_t{0});
  }
  // A 32-bit count, then the keys.
  void keys(const std::vector<BlockKey>& keys) {
    integer(static_cast<std::uint32_t>(keys.size()));
    for (const BlockKey key : keys) integer(key.value);
  }
  // Returns the message. The writer is empty then.
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads fields in the order in which FieldWriter wrote them. The first field that does not fit
// breaks the reader. From then on every read returns zero or nothing, so callers check once, at the
// end.
class FieldReader {
 public:
  // `bytes` outlives the reader.
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}

  // Reads what FieldWriter::integer() wrote. T must be the same type.
  template <class T>
  T integer() {
    static_assert(std::is_unsigned_v<T>);
    if (!has(sizeof(T))) return 0;
    T value = 0;
    for (std::size_t i = sizeof(T); i > 0; --i) {
      value =
          static_cast<T>((std::uint64_t{value} << 8U) | static_cast<std::uint8_t>(left_[i - 1]));
    }
    left_.remove_prefix(sizeof(T));
    return value;
  }
  // Fails on any byte but 0 and 1. So each message has only one wire form.
  bool flag() { return one_of(1) == 1; }
  // Reads one byte. Fails if it is above `last`, the last value of an enum.
  std::uint8_t one_of(std::uint8_t last) {
    const auto value = integer<std::uint8_t>();
    if (value > last) fail();
    return is_broken_ ? std::uint8_t{0} : value;
  }
  // Reads UTF-8 of at most bytes_max bytes. Other bytes fail, because status endpoints show these
  // texts in JSON.
  std::string text(std::size_t bytes_max) {
    const auto size = integer<std::uint16_t>();
    if (size > bytes_max || !has(size) || !is_utf8(left_.substr(0, size))) {
      fail();
      return {};
    }
    std::string value(left_.substr(0, size));
    left_.remove_prefix(size);
    return value;
  }
  // Reads what FieldWriter::name() wrote.
  std::string name() { return text(kNameBytesMax); }
  // The value's bytes are read even if the flag is 0.
  template <class T>
  std::optional<T> optional() {
    const bool is_there = flag();
    const T value = integer<T>();
    return is_there ? std::optional<T>(value) : std::nullopt;
  }
  // Reads what FieldWriter::optional_ms() wrote.
  std::optional<std::chrono::milliseconds> optional_ms() {
    const auto value = optional<std::uint64_t>();
    // A larger time could overflow when it is added to an instant. It counts as this maximum.
    constexpr std::uint64_t kMsMax = std::numeric_limits<std::uint32_t>::max();
    if (!value) return std::nullopt;
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(*value, kMsMax)));
  }
  // Returns how many elements follow. Fails if the bytes left cannot hold so many elements of
  // `bytes_each` bytes. The caller can then allocate this number safely.
  std::size_t count(std::size_t bytes_each) {
    const auto value = integer<std::uint32_t>();
    if (std::size_t{value} * bytes_each > left_.size()) fail();
    return is_broken_ ? 0 : value;
  }
  // Reads at least one key. An operation without keys fails.
  std::vector<BlockKey> keys() {
    std::vector<BlockKey> keys(count(kKeyBytes));
    for (BlockKey& key : keys) key = {integer<std::uint64_t>()};
    if (keys.empty()) fail();
    return keys;
  }
  // Breaks the reader, for a rule that only the caller knows.
  void fail() {
    is_broken_ = true;
    left_ = {};
  }
  // True if a field did not fit, or after fail().
  [[nodiscard]] bool is_broken() const { return is_broken_; }
  // True if nothing failed and no byte is left.
  [[nodiscard]] bool is_whole() const { return !is_broken_ && left_.empty(); }

 private:
  // Fails if fewer bytes are left.
  bool has(std::size_t bytes) {
    if (left_.size() < bytes) fail();
    return !is_broken_;
  }

  std::string_view left_;
  bool is_broken_ = false;
};

}  // namespace sightline::frames
