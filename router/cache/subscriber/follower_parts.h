// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/cache/subscriber/follower.h"
#include "router/cache/subscriber/zmq_socket.h"

// What the source files of Follower share.
namespace sightline::subscriber {

// How much of one socket is read before the others have their turn.
class Turn {
 public:
  [[nodiscard]] bool over() const { return messages_ >= kMessagesMax || bytes_ >= kBytesMax; }
  void count(const Multipart& message) {
    ++messages_;
    bytes_ += message.bytes();
  }

 private:
  static constexpr int kMessagesMax = 256;
  static constexpr std::size_t kBytesMax = 4U << 20U;  // with the message that passes it
  int messages_ = 0;
  std::size_t bytes_ = 0;
};

// Sockets of a follower: the low bits of their tokens, above which stands the rank.
enum Part : std::uint64_t { kLinks, kMessages, kReplay, kParts };

inline std::uint64_t token_of(CacheId cache, Part part) {
  return std::uint64_t{cache.value} * kParts + part;
}

inline Result<ZmqSocket> open_replay(const Follower::Shared& shared, const std::string& endpoint) {
  return open_replay_socket(shared.context, endpoint,
                            {shared.options.replay_messages_max, shared.options.frame_bytes_max});
}

}  // namespace sightline::subscriber
