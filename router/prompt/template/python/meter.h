// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace sightline::python {

// Bounds the work of one evaluation. Exhaustion is sticky: operations stop early with some value,
// and whoever drives them asks is_exhausted() before using it.
class Meter {
 public:
  // Text is charged one step per this many bytes, so steps also bound the memory that is held.
  static constexpr std::size_t kTextBytesPerStep = 16;

  explicit Meter(std::uint64_t steps_max) : left_(steps_max) {}

  // False when the steps are used up.
  bool spend(std::uint64_t steps = 1) {
    if (steps > left_) {
      left_ = 0;
      is_exhausted_ = true;
    } else {
      left_ -= steps;
    }
    return !is_exhausted_;
  }
  bool spend_text(std::size_t bytes) { return spend(1 + bytes / kTextBytesPerStep); }
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_; }

 private:
  std::uint64_t left_;
  bool is_exhausted_ = false;
};

}  // namespace sightline::python
