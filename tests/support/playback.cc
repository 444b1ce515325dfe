// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/support/playback.h"

#include <utility>

#include "common/base/check.h"

namespace sightline::test {

Playback::Playback(const std::vector<CapturedMessage>& messages, events::NormaliserOptions options)
    : messages_(messages),
      model_(options.model),
      engine_(options.id),
      feed_(std::move(options), events::StreamOptions{}, scheme_, index_) {
  SL_CHECK(!feed_.start().has_value());
}

void Playback::play_until(double time_s) {
  for (; next_ < messages_.size() && messages_[next_].received_s < time_s; ++next_) {
    const auto& frames = messages_[next_].frames;
    const std::vector<ByteView> views(frames.begin(), frames.end());
    SL_CHECK(!feed_.live(views, WallTime{}).has_value());
  }
}

std::int64_t Playback::predict(const AskedPrompt& prompt) const {
  const keys::KeyScope scope{.model = model_, .cache_salt = prompt.cache_salt, .lora = prompt.lora};
  const std::uint32_t block_size = feed_.status().facts.block_size.value_or(kCapturedBlockSize);
  const auto sequence =
      keys::block_keys(scheme_, scheme_.root(scope),
                       {.tokens = prompt.tokens, .media = prompt.media, .block_size = block_size});
  const auto held = index_.match(sequence.keys).of(engine_);
  const auto leading = held.gpu_blocks + held.cpu_blocks + held.storage_blocks;
  return static_cast<std::int64_t>(block_size *
                                   keys::usable_overlap(leading, prompt.tokens.size(), block_size));
}

}  // namespace sightline::test
