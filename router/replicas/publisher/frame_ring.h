// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace sightline::publisher {

// The last frames of one epoch, encoded, as many as fit. Thread safety: none.
class FrameRing {
 public:
  explicit FrameRing(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // The frame at the position behind the last one. The oldest make room for it; one that is larger
  // than all the room empties the ring.
  void push(std::string payload) {
    bytes_ += payload.size() + kFrameBytes;
    frames_.push_back(std::move(payload));
    ++last_;
    while (bytes_ > bytes_max_) pop();
  }
  // Frames larger than this are of no more use, and none before the last of them.
  void forget_to_larger_than(std::size_t payload_bytes) {
    std::size_t kept = 0;
    while (kept < frames_.size() && frames_[frames_.size() - 1 - kept].size() <= payload_bytes) {
      ++kept;
    }
    while (frames_.size() > kept) pop();
  }
  // A new epoch begins: the next frame is at position 1.
  void reset() {
    frames_.clear();
    bytes_ = 0;
    last_ = 0;
  }

  [[nodiscard]] std::uint64_t last() const { return last_; }  // 0: none yet
  // The oldest that is there; behind last() if none is.
  [[nodiscard]] std::uint64_t first() const { return last_ + 1 - frames_.size(); }
  [[nodiscard]] const std::string& at(std::uint64_t seq) const { return frames_[seq - first()]; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void pop() {
    bytes_ -= frames_.front().size() + kFrameBytes;
    frames_.pop_front();
  }

  // What the allocator and std::string add to a frame, at most.
  static constexpr std::size_t kFrameBytes = sizeof(std::string) + 32;

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::uint64_t last_ = 0;
  std::deque<std::string> frames_;
};

}  // namespace sightline::publisher
