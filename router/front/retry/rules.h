// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Whether a request that got no answer may be sent again, and to whom. Pure functions of what has
// become of it so far.
namespace sightline::retry {

// Attempts that one request may take, those without a connection among them.
inline constexpr std::uint32_t kAttemptsMax = 4;
// Times that a request may be lost: sent to a worker that then gave no answer. A worker may have
// died of it, and a third must not.
inline constexpr std::uint32_t kLossesMax = 2;
// Requests sent again that may be under way at the same time: this part of the live requests, and
// so many at least.
inline constexpr std::size_t kRetriesPercentMax = 20;
inline constexpr std::size_t kRetriesMin = 3;

// How an attempt that gave the client nothing ended.
enum class Outcome : std::uint8_t {
  Unsent,      // no connection: the worker has got nothing
  Local,       // no connection for want of means of the router itself
  KeptClosed,  // a kept connection closed without an answer: most likely its idle time was over
  Lost,        // sent on a fresh connection, and no answer, bytes that are none, or status 502
  Declined,    // status 503: it answers, and cannot serve
  Silent,      // out of time, or status 504: the worker may still be at work on it
  Final,       // anything else: nothing may follow
};

// What sending a request a second time may do.
enum class Repeatable : std::uint8_t {
  Never,       // its effects are not known
  WhenKept,    // it changes nothing; the same worker may be asked again
  AnotherToo,  // it computes an answer: any worker may
};

// What has become of a request so far.
struct Past {
  std::uint32_t attempts = 0;  // with the one just ended
  std::uint32_t losses = 0;    // before the one just ended
};

enum class Next : std::uint8_t {
  GiveUp,
  SameWorker,  // on a fresh connection
  AnotherWorker,
};

// True if the worker was sent the request and may have died of it.
[[nodiscard]] constexpr bool is_loss(Outcome ending) {
  return ending == Outcome::KeptClosed || ending == Outcome::Lost;
}

// True if the ending says something about the worker; one that closes an idle connection is well.
[[nodiscard]] constexpr bool is_failure(Outcome ending) {
  return ending != Outcome::KeptClosed && ending != Outcome::Local;
}

// What may be done after an attempt that ended so.
//
// A kept connection that closes is asked about at the same worker, on a fresh connection. If that
// one is refused, the worker died, and this was the one loss so far; if it closes without an answer
// too, the worker may have been started anew in between and have died twice: that is the end.
[[nodiscard]] Next next_after(Outcome ending, const Past& past, Repeatable repeatable);

// True if one more request may be sent again while so many are, of so many live ones.
[[nodiscard]] bool may_retry_beside(std::size_t retries, std::size_t live);

}  // namespace sightline::retry
