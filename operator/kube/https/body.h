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

// The bytes of an answer, between the threads that receive them and the thread that reads them.
// Thread safety: all methods from any thread.
class Body {
 public:
  // Above bytes_max the receiver must wait. If no thread reads before the end, it must stop.
  explicit Body(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Whether put() leaves room.
  enum class Room { More, Full };
  // Takes all bytes, or drops them after finish(). Full: the receiver continues when on_room runs,
  // on the reader's thread or in finish().
  Room put(std::string_view bytes, std::function<void()> on_room);
  // No more bytes follow. failure: the answer is incomplete. A receiver that waits continues. Later
  // calls have no effect.
  void finish(std::optional<client::Failure> failure);

  // What take() returns.
  struct BodyPiece {
    std::string bytes;
    bool is_end = false;
    // After the bytes that arrived.
    std::optional<client::Failure> failure;
  };
  // Returns bytes as soon as there are some. Waits at most time_max.
  BodyPiece take(Duration time_max);
  // Waits for the end. Returns false if it does not come within time_max.
  bool wait_for_end(Duration time_max);
  // Returns all bytes that have come, without waiting.
  BodyPiece take_all();
  // More bytes arrived than the limit allows.
  [[nodiscard]] bool is_over_full() const;

 private:
  // The held bytes. Without bytes: the end, if it has come.
  BodyPiece take_held() SL_REQUIRES(mutex_);

  const std::size_t bytes_max_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::string held_ SL_GUARDED_BY(mutex_);
  std::function<void()> on_room_ SL_GUARDED_BY(mutex_);
  bool is_finished_ SL_GUARDED_BY(mutex_) = false;
  std::optional<client::Failure> failure_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::https
