// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/ids.h"

#include "router/cache/operations/facts.h"
#include "router/replicas/follower/statistics.h"
#include "router/replicas/frames/stream_message.h"

namespace sightline::followed {

// Why a message on a stream's subjects was dropped before the follower got it.
enum class Refusal : std::uint8_t {
  // The bytes are no whole envelope.
  TooShort,
  // The sender is a build whose messages this build does not read.
  OtherVersion,
  // Forged or damaged, or of another key, model or served name.
  WrongTag,
  // The tag is right, but the content is no message.
  Malformed,
  // About another worker or rank than its subject.
  OtherStream,
};
inline constexpr std::size_t kRefusalCount = 5;

// The reason as the value of a metric's label: "too-short", …
std::string_view name_of(Refusal refusal);

// The state of one stream and of its cache.
struct FollowedStatus {
  CacheId cache;
  frames::StreamName stream;
  // health is Verified, or ToldBadly with the reason.
  operations::CacheFacts facts;
  follower::FollowerStatus at;
  follower::FollowerStatistics statistics;
  std::array<std::uint64_t, kRefusalCount> refused{};  // messages, by reason
  // Messages that did not arrive, where their number is known.
  std::uint64_t lost = 0;
  // Times that messages were lost on our side.
  std::uint64_t losses = 0;
  // When the engine last announced something new.
  std::optional<Instant> news_at;
};

}  // namespace sightline::followed
