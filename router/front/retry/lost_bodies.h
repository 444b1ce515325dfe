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

// A request in the form in which its client repeats it: the same bytes to the same target.
struct SentText {
  std::string_view method;
  std::string_view target;
  std::string_view body;
};

// Remembers requests that a worker received and did not answer. A client may repeat a request that
// kills workers. Without this record, one worker after the other would die. A body is identified by
// the keyed BLAKE3 of all its bytes. The caller computes it with id_of(), on a thread where this
// work delays nothing.
//
// A worker that dies loses all requests that run on it, and at most one of them is at fault. So a
// death counts against a request only while nothing else explains it: every other request lost by
// this death has been answered since. If kCommonDeathsMin deaths have one request in common and no
// other, they count against this one in any case.
//
// Thread safety: any thread may call any method.
class LostBodies {
 public:
  // The most lost requests. A new one replaces the oldest.
  static constexpr std::size_t kRememberedMax = 256;
  // The time for which a lost request is remembered.
  static constexpr std::chrono::minutes kRememberedTime{5};
  // The most deaths. A new one replaces the oldest.
  static constexpr std::size_t kDeathsMax = 256;
  // The most deaths per request. A new one replaces the oldest.
  static constexpr std::size_t kDeathsOfBodyMax = 8;
  // See the class comment.
  static constexpr std::size_t kCommonDeathsMin = 4;

  explicit LostBodies(const contract::IdentityKey& key) : key_(key) {}

  // Returns the id of a body. BLAKE3 of 64 MiB takes about 30 ms.
  [[nodiscard]] media::MediaId id_of(std::string_view body) const;
  // Returns whether a request with the same method, target and size is remembered. It hashes
  // nothing, and so the other requests need no hash.
  [[nodiscard]] bool knows_like(const SentText& text, Instant now);

  struct Record {
    // It was lost recently, alone or with others.
    bool is_remembered = false;
    // The losses that count against it.
    std::uint32_t losses = 0;
  };
  // Returns the record of a request. `body` is id_of(text.body), here and below.
  [[nodiscard]] Record record_of(const SentText& text, const media::MediaId& body, Instant now);
  // A lost attempt: the worker, the time when it was sent and the time of the loss.
  struct Loss {
    std::string_view worker;
    Instant sent{};
    Instant now{};
  };
  // Records a loss and returns the losses that count against the request. A loss on a worker
  // belongs to a death if the attempt was sent before the last loss of this death. Copies of a
  // request that run at the same time are one loss.
  std::uint32_t add(const SentText& text, const media::MediaId& body, const Loss& loss);
  // A worker has answered the request, and so it is harmless.
  void answered(const SentText& text, const media::MediaId& body);

 private:
  using DeathId = std::uint64_t;
  // A death of a worker, with all requests that it lost.
  struct Death {
    DeathId id = 0;
    std::string worker;
    // The last loss.
    Instant last{};
    // A request that it lost was forgotten, and may be at fault.
    bool is_unclear = false;
  };
  struct RequestPart {
    DeathId death = 0;
    // False for a copy whose loss is already counted.
    bool counts = true;
  };
  struct Entry {
    std::string method;
    std::string target;
    std::size_t bytes = 0;
    media::MediaId body;
    // The deaths that lost it, the oldest first.
    std::vector<RequestPart> parts;
    Instant last{};

    [[nodiscard]] bool has(DeathId death) const;
  };

  // Drops requests and deaths after kRememberedTime.
  void drop_old(Instant now) SL_REQUIRES(mutex_);
  [[nodiscard]] std::vector<Entry>::iterator find(const SentText& text, const media::MediaId& body)
      SL_REQUIRES(mutex_);
  [[nodiscard]] Death* find(DeathId death) SL_REQUIRES(mutex_);
  // Returns the death that a loss belongs to. Creates it if necessary.
  [[nodiscard]] DeathId death_of(const Loss& loss) SL_REQUIRES(mutex_);
  // Call it before an entry is dropped without an answer. Its deaths then count against no other
  // request.
  void forget(const Entry& entry) SL_REQUIRES(mutex_);
  // The number of deaths that count against an entry.
  [[nodiscard]] std::uint32_t losses_of(const Entry& entry) SL_REQUIRES(mutex_);
  [[nodiscard]] bool has_in_common(const Entry& entry, const std::vector<DeathId>& deaths)
      SL_REQUIRES(mutex_);

  const contract::IdentityKey key_;
  std::atomic<std::size_t> remembered_{0};
  Mutex mutex_;
  // In the order of their last loss.
  std::vector<Entry> entries_ SL_GUARDED_BY(mutex_);
  std::vector<Death> deaths_ SL_GUARDED_BY(mutex_);  // oldest first
  DeathId next_death_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::retry
