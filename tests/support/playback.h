// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "router/cache/events/event_feed.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/keys/block_key.h"
#include "tests/support/captures.h"
#include "tests/support/indexed.h"

namespace sightline::test {

// Tokens per block in the recorded sessions of vLLM 0.32. Others may have another size.
inline constexpr std::uint32_t kCapturedBlockSize = 32;

// The prompt of a prediction.
struct AskedPrompt {
  const std::vector<TokenId>& tokens;
  std::vector<keys::MediaSpan> media;
  std::optional<std::string> cache_salt;
  std::optional<std::string> lora;
};

// Plays a recorded session back into an index. Each message goes in at the time when it arrived.
class Playback {
 public:
  // `messages` outlives this object.
  Playback(const std::vector<CapturedMessage>& messages, events::NormaliserOptions options);

  void play_until(double time_s);

  // The cached tokens that the engine should report.
  [[nodiscard]] std::int64_t predict(const AskedPrompt& prompt) const;

  [[nodiscard]] const index::ExactIndex& index() const { return index_; }
  [[nodiscard]] events::FeedStatus status() const { return feed_.status(); }

 private:
  const std::vector<CapturedMessage>& messages_;
  const std::string model_;
  const CacheId engine_;
  const keys::Scheme scheme_{contract::development_identity_key()};
  index::ExactIndex index_;
  test::IndexedFeed feed_;
  std::size_t next_ = 0;
};

}  // namespace sightline::test
