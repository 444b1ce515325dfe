// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Decides whether a request without an answer may be sent again, and to which worker. Pure
// functions of the attempts so far.
namespace sightline::retry {

// The most attempts of one request, including the ones without a connection.
inline constexpr std::uint32_t kAttemptsMax = 4;
// The most losses of a request: a worker received it and gave no answer. The request may have
// killed the worker. A third worker must not die.
inline constexpr std::uint32_t kLossesMax = 2;
// The most requests that run as retries at the same time: this percentage of the live requests, and
// at least kRetriesMin.
inline constexpr std::size_t kRetriesPercentMax = 20;
inline constexpr std::size_t kRetriesMin = 3;

// The end of an attempt that gave the client nothing.
enum class AttemptOutcome : std::uint8_t {
  // No connection: the worker has received nothing.
  Unsent,
  // No connection because the router lacks a resource, for example descriptors.
  Local,
  // A kept connection was closed without an answer. Most likely its idle time had ended.
  KeptClosed,
  // Sent on a new connection, without an answer. Also an invalid answer, or status 502.
  Lost,
  // Status 503: the worker answers, but cannot serve the request.
  Declined,
  // No answer in time, or status 504: the worker may still compute.
  Silent,
  // Any other end: no further attempt may follow.
  Final,
};

// The effects of sending a request a second time.
enum class Repeatable : std::uint8_t {
  // Unknown effects.
  Never,
  // It changes nothing. The same worker may get it again.
  WhenKept,
  // It computes an answer. Any worker may get it.
  AnotherToo,
};

// The attempts of a request so far.
struct Past {
  // Including the one that has just ended.
  std::uint32_t attempts = 0;
  // Before the one that has just ended.
  std::uint32_t losses = 0;
};

// What may follow an attempt.
enum class Next : std::uint8_t {
  GiveUp,
  // On a new connection.
  SameWorker,
  AnotherWorker,
};

// True if the worker has received the request, which may have killed it.
[[nodiscard]] constexpr bool is_loss(AttemptOutcome ending) {
  return ending == AttemptOutcome::KeptClosed || ending == AttemptOutcome::Lost;
}

// True if the end says something about the worker. A worker may close an idle connection.
[[nodiscard]] constexpr bool is_failure(AttemptOutcome ending) {
  return ending != AttemptOutcome::KeptClosed && ending != AttemptOutcome::Local;
}

// Decides what may follow an attempt that ended like this.
//
// If a kept connection is closed, the same worker gets the request on a new connection. If this
// connection is refused, the worker has died, and this is the only loss so far. If it is closed
// without an answer too, the worker may have restarted meanwhile and died twice. No further attempt
// follows then.
[[nodiscard]] Next next_after(AttemptOutcome ending, const Past& past, Repeatable repeatable);

// Returns whether one more request may be retried. `retries` is the number of present retries,
// `live` the number of live requests.
[[nodiscard]] bool may_retry_beside(std::size_t retries, std::size_t live);

}  // namespace sightline::retry
