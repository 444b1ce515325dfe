// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/clock.h"

#include <memory>

namespace sightline {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return std::chrono::steady_clock::now(); }
  [[nodiscard]] WallTime wall() const override { return std::chrono::system_clock::now(); }
};

}  // namespace

const Clock& system_clock() {
  // Never destroyed: the log's thread reads it until the process ends.
  static const Clock* const clock = std::make_unique<SystemClock>().release();
  return *clock;
}

}  // namespace sightline
