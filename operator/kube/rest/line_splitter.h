// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sightline::rest {

// Cuts bytes, as they come, into lines. Pure; thread safety: none.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  void add(std::string_view bytes);
  // The next whole line, without its end; empty lines are left out.
  std::optional<std::string> next();
  // A line is longer than the bound: nothing more can be read.
  [[nodiscard]] bool is_too_long() const;
  // Bytes of a line whose end has not come.
  [[nodiscard]] bool has_rest() const { return at_ < held_.size(); }

 private:
  const std::size_t line_bytes_max_;
  std::string held_;
  std::size_t at_ = 0;        // of what was not given yet
  std::size_t searched_ = 0;  // up to here there is no line end after at_
};

}  // namespace sightline::rest
