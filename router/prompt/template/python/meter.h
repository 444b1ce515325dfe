// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>

namespace sightline::python {

// Limits the work of one evaluation. After the last step every operation stops early with some
// value. The caller of the operations must check is_exhausted() before it uses this value.
class Meter {
 public:
  // A step is charged for this many bytes of text. The steps thus limit the memory as well.
  static constexpr std::size_t kTextBytesPerStep = 16;

  // steps_max is the number of steps of the whole evaluation.
  explicit Meter(std::uint64_t steps_max) : left_(steps_max) {}

  // Uses steps up. Returns false if too few are left.
  bool spend(std::uint64_t steps = 1) {
    if (steps > left_) {
      left_ = 0;
      is_exhausted_ = true;
    } else {
      left_ -= steps;
    }
    return !is_exhausted_;
  }
  // Charges the steps of a text of this size, at least one.
  bool spend_text(std::size_t bytes) { return spend(1 + bytes / kTextBytesPerStep); }
  // True if a step was refused. It stays true.
  [[nodiscard]] bool is_exhausted() const { return is_exhausted_; }

 private:
  // The steps that are not used.
  std::uint64_t left_;
  bool is_exhausted_ = false;
};

}  // namespace sightline::python
