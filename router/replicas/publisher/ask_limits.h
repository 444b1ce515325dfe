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

struct ReaderLimitOptions {
  // Of each reader in a second. A router that pulls a dump of 10 M blocks asks some 100 times for
  // 100 MB.
  std::uint32_t asks_max = 500;
  std::size_t reply_bytes_max = 256U << 20U;
  std::size_t readers_max = 4'096;  // that are known; above it others are refused
  // Questions in a second, of all readers together, that do not name the stream: those of readers
  // that begin, and what somebody recorded before the stream began.
  std::uint32_t strangers_asks_max = 1'000;
  Duration forgotten_after = std::chrono::seconds(60);  // a reader that asks nothing for so long
};

// Which asks are answered: each once, and of each reader so many in seconds that begin with its
// first. What is repeated takes nothing of anybody's share. Thread safety: none.
class ReaderLimits {
 public:
  explicit ReaderLimits(ReaderLimitOptions options) : options_(options) {}

  struct Ask {
    const std::string& reader;
    std::uint64_t number = 0;
    bool names_stream = false;  // it was made since the stream began
  };
  enum class Verdict : std::uint8_t {
    Admitted,
    Repeated,  // not newer than one that was heard of this reader
    TooMany,   // above its share, or no room for another reader
  };
  Verdict admit(const Ask& ask, Instant now);
  // What was sent to a reader whose ask was admitted.
  void charge(const std::string& reader, std::size_t bytes);

 private:
  struct Second {
    Instant since{};
    std::uint32_t asks = 0;
    std::size_t bytes = 0;
  };
  struct Reader {
    std::uint64_t number = 0;  // of its newest ask
    Instant heard_at{};        // when that came
    Second second;
  };
  Reader* find_or_add(const std::string& reader, Instant now);
  static Second& running(Second& second, Instant now);

  ReaderLimitOptions options_;
  std::map<std::string, Reader> readers_;
  Second strangers_;
  Instant next_sweep_{};
};

// Routers' wishes that the engine be asked anew for all that it holds, which costs the engine:
// several are one, and the next is heard after a time that doubles. Thread safety: none.
class RelearnWish {
 public:
  // True: it counts. False: one is open, or the last one is not long enough ago.
  bool ask(Instant now) {
    if (is_open_ || (asked_at_ && now - *asked_at_ < pause_)) return false;
    const bool is_quiet = !asked_at_ || now - *asked_at_ >= 2 * kPauseMax;
    pause_ = is_quiet ? kPauseMin : std::min(2 * pause_, kPauseMax);
    asked_at_ = now;
    return is_open_ = true;
  }
  // True once for each that counted.
  bool take() { return std::exchange(is_open_, false); }
  [[nodiscard]] bool is_open() const { return is_open_; }

 private:
  static constexpr Duration kPauseMin = std::chrono::seconds(1);
  static constexpr Duration kPauseMax = std::chrono::minutes(5);

  bool is_open_ = false;
  std::optional<Instant> asked_at_;
  Duration pause_ = kPauseMin;
};

}  // namespace sightline::publisher
