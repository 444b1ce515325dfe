// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>

#include "common/base/clock.h"
#include "common/base/ids.h"

#include "router/replicas/followed/status.h"

namespace sightline::followed {

// Writes what has changed in what is known of streams, as far as somebody should hear of it. What
// others can cause as often as they like, refused messages, one line a stream in ten seconds.
// Thread safety: none.
class StreamLog {
 public:
  void tell(const FollowedStatus& before, const FollowedStatus& now, Instant time);
  void forget(CacheId cache) { refused_.erase(cache); }

 private:
  struct Refused {
    std::uint64_t told = 0;  // messages
    Instant next{};
  };
  std::map<CacheId, Refused> refused_;
};

}  // namespace sightline::followed
