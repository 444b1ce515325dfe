// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/bytes.h"

namespace sightline::fuzz {

// Splits an input from its beginning. After its end, numbers are 0 and pieces are empty.
class Input {
 public:
  explicit Input(ByteView bytes) : rest_(bytes) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  std::uint8_t byte() {
    const auto piece = take(1);
    return piece.empty() ? std::uint8_t{0} : piece[0];
  }

  ByteView take(std::size_t size) {
    const auto piece = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(piece.size());
    return piece;
  }

  // Returns a piece whose length comes first, as two bytes in big-endian order.
  ByteView sized() {
    const std::size_t high = byte();
    return take(high << 8U | byte());
  }

  // Returns the text up to a line "%%", which seeds can contain. Without that line, returns the
  // rest.
  std::string_view section() {
    constexpr std::string_view kEnd = "\n%%\n";
    const auto text = text_of(rest_);
    const auto end = text.find(kEnd);
    const auto section = text.substr(0, end);
    take(end == std::string_view::npos ? text.size() : end + kEnd.size());
    return section;
  }

  ByteView rest() { return take(rest_.size()); }
  std::string_view text() { return text_of(rest()); }

 private:
  ByteView rest_;
};

}  // namespace sightline::fuzz
