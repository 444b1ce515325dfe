// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace sightline::publisher {

// The last frames of one epoch, encoded, as many as fit into bytes_max. Routers request missing
// frames from it.
// Thread safety: one thread at a time.
class FrameRing {
 public:
  // `bytes_max` limits bytes().
  explicit FrameRing(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Adds the frame at the position behind the last one. The oldest frames make room. A frame that
  // is larger than bytes_max empties the ring.
  void push(std::string payload) {
    bytes_ += payload.size() + kFrameBytes;
    frames_.push_back(std::move(payload));
    ++last_;
    while (bytes_ > bytes_max_) pop();
  }
  // Drops the newest frame above `payload_bytes`, and all before it. A reader needs
  // all frames without a gap, so the older ones are of no use.
  void forget_to_larger_than(std::size_t payload_bytes) {
    std::size_t kept = 0;
    while (kept < frames_.size() && frames_[frames_.size() - 1 - kept].size() <= payload_bytes) {
      ++kept;
    }
    while (frames_.size() > kept) pop();
  }
  // Drops all frames for a new epoch. The next frame is at position 1.
  void reset() {
    frames_.clear();
    bytes_ = 0;
    last_ = 0;
  }

  // The last position, 0 if there is no frame yet.
  [[nodiscard]] std::uint64_t last() const { return last_; }
  // The oldest position in the ring. It is last() + 1 if the ring is empty.
  [[nodiscard]] std::uint64_t first() const { return last_ + 1 - frames_.size(); }
  // The frame at a position from first() to last().
  [[nodiscard]] const std::string& at(std::uint64_t seq) const { return frames_[seq - first()]; }
  // Bytes in memory, about.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  // Drops the oldest frame.
  void pop() {
    bytes_ -= frames_.front().size() + kFrameBytes;
    frames_.pop_front();
  }

  // The most that the allocator and std::string add to a frame.
  static constexpr std::size_t kFrameBytes = sizeof(std::string) + 32;

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::uint64_t last_ = 0;
  std::deque<std::string> frames_;
};

}  // namespace sightline::publisher
