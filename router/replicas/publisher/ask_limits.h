// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"

namespace sightline::publisher {

// Limits on what an agent's stream does for its readers.
struct ReaderLimitOptions {
  // Requests of one reader within a second. A router that pulls a dump of 10 million blocks sends
  // about 100 requests for 100 MB.
  std::uint32_t asks_max = 500;
  // Bytes of replies to one reader within a second.
  std::size_t reply_bytes_max = 256U << 20U;
  // Readers that are remembered. Above it, further readers are refused.
  std::size_t readers_max = 4'096;
  // Questions within a second, of all readers together, that do not name the stream. They come from
  // readers that have just begun, or an attacker recorded them before the stream began.
  std::uint32_t strangers_asks_max = 1'000;
  // A reader that requests nothing for this time may be forgotten, if readers_max is reached.
  Duration forgotten_after = std::chrono::seconds(60);
};

// Decides which requests an agent answers: each request once, and a limited number of each reader
// within a second. A reader's second begins with its first request. A repeated request does not use
// up any reader's share.
// Thread safety: one thread at a time.
class ReaderLimits {
 public:
  explicit ReaderLimits(ReaderLimitOptions options) : options_(options) {}

  // One request. The number is Freshness::number.
  struct Ask {
    const std::string& reader;
    std::uint64_t number = 0;
    // The request was made after the stream began.
    bool names_stream = false;
  };
  // The decision about a request.
  enum class AskVerdict : std::uint8_t {
    Admitted,
    // Its number is not above the highest number that this reader has sent.
    Repeated,
    // It is above the reader's share, or there is no room for another reader.
    TooMany,
  };
  // Counts the request and decides about it. The number counts as used even if the verdict is
  // TooMany.
  AskVerdict admit(const Ask& ask, Instant now);
  // Counts the bytes that were sent to a reader after an admitted request. An unknown reader is
  // ignored.
  void charge(const std::string& reader, std::size_t bytes);

 private:
  // What was admitted in the present second.
  struct Second {
    Instant since{};
    std::uint32_t asks = 0;
    std::size_t bytes = 0;
  };
  // A remembered reader.
  struct ReaderRecord {
    // Of its newest request.
    std::uint64_t number = 0;
    // When that request came.
    Instant heard_at{};
    Second second;
  };
  // Returns null if there is no room for another reader.
  ReaderRecord* find_or_add(const std::string& reader, Instant now);
  // Returns the second, restarted if it is over.
  static Second& running(Second& second, Instant now);

  ReaderLimitOptions options_;
  std::map<std::string, ReaderRecord> readers_;
  Second strangers_;
  Instant next_sweep_{};
};

// Limits how often routers can make the agent resync an engine's cache, because a resync costs the
// engine work. Several requests count as one. After each one that counts, the pause before the next
// doubles, from 1 s up to 5 min. After 10 min without one, the pause is 1 s again.
// Thread safety: one thread at a time.
class RelearnWish {
 public:
  // Returns true if the request counts. It does not if one is open, or if the pause after the last
  // one is not over.
  bool ask(Instant now) {
    if (is_open_ || (asked_at_ && now - *asked_at_ < pause_)) return false;
    const bool is_quiet = !asked_at_ || now - *asked_at_ >= 2 * kPauseMax;
    pause_ = is_quiet ? kPauseMin : std::min(2 * pause_, kPauseMax);
    asked_at_ = now;
    return is_open_ = true;
  }
  // Returns true once for each request that counted.
  bool take() { return std::exchange(is_open_, false); }
  // Whether a request that counted was not taken yet.
  [[nodiscard]] bool is_open() const { return is_open_; }

 private:
  static constexpr Duration kPauseMin = std::chrono::seconds(1);
  static constexpr Duration kPauseMax = std::chrono::minutes(5);

  bool is_open_ = false;
  std::optional<Instant> asked_at_;
  Duration pause_ = kPauseMin;
};

}  // namespace sightline::publisher
