// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/follower/waiting_frames.h"

#include <utility>

#include "router/replicas/frames/stream_codec.h"

namespace sightline::follower {

namespace {

// The overhead of the map and of the allocator.
constexpr std::size_t kOverheadBytes = 128;

// About the bytes in memory.
std::size_t bytes_of(const frames::Frame& frame) {
  std::size_t bytes = sizeof(frame) + kOverheadBytes;
  if (frame.beat) bytes += frame.beat->trouble.size();
  for (const auto& operation : frame.operations) {
    bytes += sizeof(operation) + frames::encoded_bytes(operation);
  }
  return bytes;
}

}  // namespace

std::optional<Drop> WaitingFrames::keep(frames::Frame frame) {
  if (frames_.contains(frame.seq)) return Drop::Repeated;
  const std::size_t bytes = bytes_of(frame);
  // Without room the frame is dropped, not an older one: earlier positions are applied first. The
  // router requests the gap later.
  if (bytes > bytes_max_ - held_.bytes() || !held_.add(bytes)) return Drop::NoRoom;
  const std::uint64_t seq = frame.seq;
  frames_.emplace(seq, WaitingFrame{std::move(frame), bytes});
  return std::nullopt;
}

std::optional<frames::Frame> WaitingFrames::take(std::uint64_t seq) {
  const auto found = frames_.find(seq);
  if (found == frames_.end()) return std::nullopt;
  held_.remove(found->second.bytes);
  frames::Frame frame = std::move(found->second.frame);
  frames_.erase(found);
  return frame;
}

void WaitingFrames::drop_through(std::uint64_t seq) {
  while (!frames_.empty() && frames_.begin()->first <= seq) {
    held_.remove(frames_.begin()->second.bytes);
    frames_.erase(frames_.begin());
  }
}

void WaitingFrames::clear() {
  frames_.clear();
  held_.clear();
}

std::optional<std::uint64_t> WaitingFrames::first() const {
  if (frames_.empty()) return std::nullopt;
  return frames_.begin()->first;
}

}  // namespace sightline::follower
