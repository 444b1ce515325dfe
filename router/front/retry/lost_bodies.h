// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/contract/identity_key.h"

#include "router/prompt/media/media_id.h"

namespace sightline::retry {

// A request as its client sends it again: the same bytes to the same target.
struct SentText {
  std::string_view method;
  std::string_view target;
  std::string_view body;
};

// Requests that were sent to a worker and got no answer, so that a client that repeats one does
// not have worker after worker die of it. Bodies are known by a keyed BLAKE3 of all their bytes;
// nothing is hashed while no request of the same target and length is remembered.
// Thread safety: all methods from any thread.
class LostBodies {
 public:
  static constexpr std::size_t kRememberedMax = 256;  // the oldest goes first
  static constexpr std::chrono::minutes kRememberedTime{5};

  explicit LostBodies(const contract::IdentityKey& key) : key_(key) {}

  // Times that this request was lost lately.
  [[nodiscard]] std::uint32_t losses_of(const SentText& text, Instant now);
  // One more time, of an attempt that began at `sent`; gives their number. Copies of a request that
  // were under way together when their worker died are one loss.
  std::uint32_t add(const SentText& text, Instant sent, Instant now);
  // A worker has answered the request: it is harmless.
  void answered(const SentText& text, Instant now);

 private:
  struct Entry {
    std::string method;
    std::string target;
    std::size_t bytes = 0;
    media::MediaId body;
    std::uint32_t losses = 0;
    Instant last{};
  };

  // Those whose time is over are dropped before.
  [[nodiscard]] bool knows_like(const SentText& text, Instant now) SL_REQUIRES(mutex_);
  [[nodiscard]] std::vector<Entry>::iterator find(const SentText& text, const media::MediaId& body)
      SL_REQUIRES(mutex_);
  [[nodiscard]] media::MediaId id_of(std::string_view body) const;

  const contract::IdentityKey key_;
  std::atomic<std::size_t> remembered_{0};
  Mutex mutex_;
  std::vector<Entry> entries_ SL_GUARDED_BY(mutex_);  // by the time of their last loss
};

}  // namespace sightline::retry
