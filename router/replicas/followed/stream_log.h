// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>

#include "common/base/clock.h"
#include "common/base/ids.h"

#include "router/replicas/followed/stream_status.h"

namespace sightline::followed {

// Writes log lines when the state of a stream changes. Others can cause refused messages as often
// as they like. So these get one line for each stream in ten seconds.
// Thread safety: one thread at a time.
class StreamLog {
 public:
  // Logs the changes from `before` to `now`, at the time `time`.
  void tell(const FollowedStatus& before, const FollowedStatus& now, Instant time);
  // The stream has ended.
  void forget(CacheId cache) { refused_.erase(cache); }

 private:
  // The log lines about a stream's refused messages.
  struct RefusalLog {
    // Refused messages that were logged.
    std::uint64_t told = 0;
    // When the next line may come.
    Instant next{};
  };
  std::map<CacheId, RefusalLog> refused_;
};

}  // namespace sightline::followed
