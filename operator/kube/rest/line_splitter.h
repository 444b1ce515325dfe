// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sightline::rest {

// Cuts incoming bytes into lines. Pure.
// Thread safety: one thread at a time.
class LineSplitter {
 public:
  // line_bytes_max limits the memory that a line without an end takes.
  explicit LineSplitter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // Adds received bytes.
  void add(std::string_view bytes);
  // The next whole line, without its end. Skips empty lines.
  std::optional<std::string> next();
  // True if a line exceeds the limit. Then nothing more can be read.
  [[nodiscard]] bool is_too_long() const;
  // True if the bytes end within a line.
  [[nodiscard]] bool has_rest() const { return at_ < held_.size(); }

 private:
  const std::size_t line_bytes_max_;
  std::string held_;
  // The start of the bytes that next() has not returned.
  std::size_t at_ = 0;
  // Up to here there is no line end after at_.
  std::size_t searched_ = 0;
};

}  // namespace sightline::rest
