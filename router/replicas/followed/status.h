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
#include "router/replicas/frames/message.h"

namespace sightline::followed {

// Why a message on a stream's subjects was not even looked at.
enum class Refusal : std::uint8_t {
  TooShort,      // no whole envelope
  OtherVersion,  // of a build whose messages this one does not read
  WrongTag,      // forged, damaged, or of another key, model or served name
  Malformed,     // its tag is right and it is no message
  OtherStream,   // about another worker or rank than its subject
};
inline constexpr std::size_t kRefusalCount = 5;

// As a metric's label: "too-short", ...
std::string_view name_of(Refusal refusal);

// What is known of one stream and of the cache that it tells of.
struct FollowedStatus {
  CacheId cache;
  frames::StreamName stream;
  operations::CacheFacts facts;  // health is Verified, or ToldBadly with the reason
  follower::FollowerStatus at;
  follower::FollowerStatistics statistics;
  std::array<std::uint64_t, kRefusalCount> refused{};  // messages, by reason
  std::uint64_t lost = 0;          // messages that did not reach us, where it is known how many
  std::uint64_t losses = 0;        // times that messages were lost on our side
  std::optional<Instant> news_at;  // its engine announced something new
};

}  // namespace sightline::followed
