// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/replicas/membership/announcement.h"

namespace sightline::membership {

// Why two processes cannot act as one, the widest difference first. What they send each other could
// not be opened, or would mean something else.
enum class Difference : std::uint8_t {
  Scope,
  Revision,
  IdentityKey,    // pictures and blocks have other names
  Model,          // other tokens for the same request
  ServedModel,    // the name that block keys depend on
  FrameVersions,  // no version that both read
  BlockSize,      // blocks of other lengths
  Proof,          // nothing that is known differs, and its sender does not prove the identity key
};
inline constexpr std::array kDifferences = {
    Difference::Scope,       Difference::Revision,      Difference::IdentityKey, Difference::Model,
    Difference::ServedModel, Difference::FrameVersions, Difference::BlockSize,   Difference::Proof};

// "scope", "revision", "identity_key", "model", "served_model", "frame_versions", "block_size",
// "proof": as in /v1/replicas and metrics.
std::string_view name_of(Difference difference);

struct Unfit {
  Difference difference = Difference::Scope;
  std::string reason;  // one sentence that names both values

  bool operator==(const Unfit&) const = default;
};

// Whether an announcement came with a proof of our identity key.
enum class Proof : bool { No, Yes };

// Nothing: they fit. A block size that either does not know is no difference. Pure.
std::optional<Unfit> why_unfit(const Announcement& mine, const Announcement& theirs, Proof proof);

}  // namespace sightline::membership
