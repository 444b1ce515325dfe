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
// not have worker after worker die of it. Bodies are known by a keyed BLAKE3 of all their bytes,
// which the caller computes with id_of(), where the work is in nobody's way.
//
// A worker that dies loses all requests that run on it, and at most one of them is to blame. So a
// death counts against a request only while nothing else explains it: no other request that was
// lost with it is unanswered since. kCommonDeathsMin deaths that have one request in common, and
// no other, count against that one in any case.
// Thread safety: all methods from any thread.
class LostBodies {
 public:
  static constexpr std::size_t kRememberedMax = 256;  // the oldest goes first
  static constexpr std::chrono::minutes kRememberedTime{5};
  static constexpr std::size_t kDeathsMax = 256;      // likewise
  static constexpr std::size_t kDeathsOfBodyMax = 8;  // likewise
  static constexpr std::size_t kCommonDeathsMin = 4;

  explicit LostBodies(const contract::IdentityKey& key) : key_(key) {}

  // BLAKE3 of 64 MiB takes about 30 ms.
  [[nodiscard]] media::MediaId id_of(std::string_view body) const;
  // True: a request of the same target and length is remembered. Nothing is hashed for the others.
  [[nodiscard]] bool knows_like(const SentText& text, Instant now);

  struct Record {
    bool is_remembered = false;  // it was lost lately, with others or alone
    std::uint32_t losses = 0;    // those that count against it
  };
  // `body` is id_of(text.body), here and below.
  [[nodiscard]] Record record_of(const SentText& text, const media::MediaId& body, Instant now);
  // An attempt that was lost.
  struct Loss {
    std::string_view worker;
    Instant sent{};
    Instant now{};
  };
  // Gives the losses that count against the request by now. What is lost on a worker before a death
  // of it is over was lost by that death; copies of a request that were under way together are one
  // loss.
  std::uint32_t add(const SentText& text, const media::MediaId& body, const Loss& loss);
  // A worker has answered the request: it is harmless.
  void answered(const SentText& text, const media::MediaId& body);

 private:
  using DeathId = std::uint64_t;
  struct Death {
    DeathId id = 0;
    std::string worker;
    Instant last{};           // loss
    bool is_unclear = false;  // a request that was lost by it is forgotten, and may be to blame
  };
  struct Part {
    DeathId death = 0;
    bool counts = true;  // false: of a copy, whose loss is counted
  };
  struct Entry {
    std::string method;
    std::string target;
    std::size_t bytes = 0;
    media::MediaId body;
    std::vector<Part> parts;  // the deaths that it was part of, the oldest first
    Instant last{};

    [[nodiscard]] bool has(DeathId death) const;
  };

  void drop_old(Instant now) SL_REQUIRES(mutex_);
  [[nodiscard]] std::vector<Entry>::iterator find(const SentText& text, const media::MediaId& body)
      SL_REQUIRES(mutex_);
  [[nodiscard]] Death* find(DeathId death) SL_REQUIRES(mutex_);
  [[nodiscard]] DeathId death_of(const Loss& loss) SL_REQUIRES(mutex_);
  void forget(const Entry& entry) SL_REQUIRES(mutex_);
  [[nodiscard]] std::uint32_t losses_of(const Entry& entry) SL_REQUIRES(mutex_);
  [[nodiscard]] bool has_in_common(const Entry& entry, const std::vector<DeathId>& deaths)
      SL_REQUIRES(mutex_);

  const contract::IdentityKey key_;
  std::atomic<std::size_t> remembered_{0};
  Mutex mutex_;
  std::vector<Entry> entries_ SL_GUARDED_BY(mutex_);  // by the time of their last loss
  std::vector<Death> deaths_ SL_GUARDED_BY(mutex_);   // the oldest first
  DeathId next_death_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::retry
