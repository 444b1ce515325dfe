// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/kube/client/failure.h"

namespace sightline::https {

// The bytes of an answer between the threads that receive them and the one that reads them.
// Thread safety: all methods from any thread.
class Body {
 public:
  // Beyond bytes_max the receiver has to wait; where nobody reads before the end, it has to stop.
  explicit Body(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  enum class Room { More, Full };
  // Takes all of the bytes. Full: go on when on_room runs, on the reader's thread.
  Room put(std::string_view bytes, std::function<void()> on_room);
  // No more bytes come; failure: not all came.
  void finish(std::optional<client::Failure> failure);

  struct Piece {
    std::string bytes;
    bool is_end = false;
    std::optional<client::Failure> failure;  // after the bytes that came
  };
  // Bytes as soon as there are some, waiting no longer than that for them.
  Piece take(Duration time_max);
  // Waits for the end; false: it did not come in this time.
  bool wait_for_end(Duration time_max);
  // All that is there.
  Piece take_all();
  // More came than the bound says.
  [[nodiscard]] bool is_over_full() const;

 private:
  Piece take_held() SL_REQUIRES(mutex_);

  const std::size_t bytes_max_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::string held_ SL_GUARDED_BY(mutex_);
  std::function<void()> on_room_ SL_GUARDED_BY(mutex_);
  bool is_finished_ SL_GUARDED_BY(mutex_) = false;
  std::optional<client::Failure> failure_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::https
