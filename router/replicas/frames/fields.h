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

#include "router/replicas/frames/codec.h"

// The fields that messages are made of. Thread safety: none.
namespace sightline::frames {

using keys::BlockKey;

class Writer {
 public:
  template <class T>
  void integer(T value) {
    static_assert(std::is_unsigned_v<T>);
    std::array<std::uint8_t, 8> bytes{};
    store_le64(bytes.data(), value);
    out_.append(reinterpret_cast<const char*>(bytes.data()), sizeof(T));
  }
  void flag(bool value) { integer<std::uint8_t>(value ? 1 : 0); }
  void text(std::string_view value, std::size_t bytes_max) {
    SL_CHECK(value.size() <= bytes_max);
    integer(static_cast<std::uint16_t>(value.size()));
    out_.append(value);
  }
  void name(std::string_view value) { text(value, kNameBytesMax); }
  template <class T>
  void optional(const std::optional<T>& value) {
    flag(value.has_value());
    integer<T>(value.value_or(T{}));
  }
  void optional_ms(const std::optional<std::chrono::milliseconds>& value) {
    flag(value.has_value());
    integer(value ? static_cast<std::uint64_t>(value->count()) : std::uint64_t{0});
  }
  void keys(const std::vector<BlockKey>& keys) {
    integer(static_cast<std::uint32_t>(keys.size()));
    for (const BlockKey key : keys) integer(key.value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads until something does not fit; from then on everything is zero.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

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
  bool flag() { return one_of(1) == 1; }
  // At most `last`.
  std::uint8_t one_of(std::uint8_t last) {
    const auto value = integer<std::uint8_t>();
    if (value > last) fail();
    return is_broken_ ? std::uint8_t{0} : value;
  }
  // UTF-8, at most so many bytes: what is told of it in JSON stays JSON.
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
  std::string name() { return text(kNameBytesMax); }
  template <class T>
  std::optional<T> optional() {
    const bool is_there = flag();
    const T value = integer<T>();
    return is_there ? std::optional<T>(value) : std::nullopt;
  }
  std::optional<std::chrono::milliseconds> optional_ms() {
    const auto value = optional<std::uint64_t>();
    // Above it, a sum with an instant could overflow.
    constexpr std::uint64_t kMsMax = std::numeric_limits<std::uint32_t>::max();
    if (!value) return std::nullopt;
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(*value, kMsMax)));
  }
  // How many things of at least so many bytes follow.
  std::size_t count(std::size_t bytes_each) {
    const auto value = integer<std::uint32_t>();
    if (std::size_t{value} * bytes_each > left_.size()) fail();
    return is_broken_ ? 0 : value;
  }
  std::vector<BlockKey> keys() {
    std::vector<BlockKey> keys(count(kKeyBytes));
    for (BlockKey& key : keys) key = {integer<std::uint64_t>()};
    if (keys.empty()) fail();
    return keys;
  }
  void fail() {
    is_broken_ = true;
    left_ = {};
  }
  [[nodiscard]] bool is_broken() const { return is_broken_; }
  [[nodiscard]] bool is_whole() const { return !is_broken_ && left_.empty(); }

 private:
  bool has(std::size_t bytes) {
    if (left_.size() < bytes) fail();
    return !is_broken_;
  }

  std::string_view left_;
  bool is_broken_ = false;
};

}  // namespace sightline::frames
