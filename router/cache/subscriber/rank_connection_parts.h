// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/cache/subscriber/rank_connection.h"
#include "router/cache/subscriber/zmq_socket.h"

// What the sources of RankConnection share.
namespace sightline::subscriber {

// How much of one socket is read before the other sockets have their turn.
class ReadQuota {
 public:
  // Returns whether the turn is over, by one of the two limits below.
  [[nodiscard]] bool over() const { return messages_ >= kMessagesMax || bytes_ >= kBytesMax; }
  // Counts a message that was read in this turn.
  void count(const Multipart& message) {
    ++messages_;
    bytes_ += message.bytes();
  }

 private:
  // A turn ends after so many messages or bytes. The message that exceeds the bytes is read too.
  static constexpr int kMessagesMax = 256;
  static constexpr std::size_t kBytesMax = 4U << 20U;
  int messages_ = 0;
  std::size_t bytes_ = 0;
};

// The sockets of a follower. They are the low bits of their tokens. The rank is in the bits above.
enum Part : std::uint64_t { kLinks, kMessages, kReplay, kParts };

// Returns the poller's token of one socket. RankConnection::engine_of() finds the cache in it.
inline std::uint64_t token_of(CacheId cache, Part part) {
  return std::uint64_t{cache.value} * kParts + part;
}

// Opens the replay socket of a rank, with the limits of the options. Has the errors of
// open_replay_socket().
inline Result<ZmqSocket> open_replay(const RankConnection::Deps& shared,
                                     const std::string& endpoint) {
  return open_replay_socket(shared.context, endpoint,
                            {shared.options.replay_messages_max, shared.options.frame_bytes_max});
}

}  // namespace sightline::subscriber
