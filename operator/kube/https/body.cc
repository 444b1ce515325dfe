// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/https/body.h"

#include <utility>

namespace sightline::https {

Body::Room Body::put(std::string_view bytes, std::function<void()> on_room) {
  Room room = Room::More;
  {
    const MutexLock lock(mutex_);
    if (is_finished_) return Room::More;  // the reader has gone
    held_ += bytes;
    if (held_.size() > bytes_max_) {
      room = Room::Full;
      on_room_ = std::move(on_room);
    }
  }
  changed_.notify_all();
  return room;
}

void Body::finish(std::optional<client::Failure> failure) {
  std::function<void()> on_room;
  {
    const MutexLock lock(mutex_);
    if (is_finished_) return;
    is_finished_ = true;
    failure_ = std::move(failure);
    on_room = std::exchange(on_room_, {});
  }
  changed_.notify_all();
  // A receiver that waits occupies its connection for as long.
  if (on_room) on_room();
}

Body::BodyPiece Body::take_held() {
  BodyPiece piece{std::exchange(held_, {}), false, {}};
  if (!piece.bytes.empty() || !is_finished_) return piece;
  piece.is_end = true;
  piece.failure = failure_;
  return piece;
}

Body::BodyPiece Body::take(Duration time_max) {
  BodyPiece piece;
  std::function<void()> on_room;
  {
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, time_max,
                      [this]() SL_REQUIRES(mutex_) { return is_finished_ || !held_.empty(); });
    piece = take_held();
    on_room = std::exchange(on_room_, {});
  }
  if (on_room) on_room();
  return piece;
}

bool Body::wait_for_end(Duration time_max) {
  const MutexLock lock(mutex_);
  return changed_.wait_for(mutex_, time_max, [this]() SL_REQUIRES(mutex_) { return is_finished_; });
}

Body::BodyPiece Body::take_all() {
  const MutexLock lock(mutex_);
  BodyPiece piece{std::exchange(held_, {}), is_finished_, failure_};
  return piece;
}

bool Body::is_over_full() const {
  const MutexLock lock(mutex_);
  return held_.size() > bytes_max_;
}

}  // namespace sightline::https
