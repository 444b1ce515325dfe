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

// Why two processes cannot work together, the widest difference first. They could not open each
// other's messages, or the messages would mean something else.
enum class Difference : std::uint8_t {
  // The deployments differ.
  Scope,
  // The revisions of one deployment differ. This is normal during a rollout.
  Revision,
  // Images and blocks have other names.
  IdentityKey,
  // The same request gives other tokens.
  Model,
  // The name that block keys depend on.
  ServedModel,
  // There is no version that both read.
  FrameVersions,
  // Their blocks have other lengths.
  BlockSize,
  // No known value differs, but the sender does not prove the identity key.
  Proof,
};
inline constexpr std::array kDifferences = {
    Difference::Scope,       Difference::Revision,      Difference::IdentityKey, Difference::Model,
    Difference::ServedModel, Difference::FrameVersions, Difference::BlockSize,   Difference::Proof};

// The difference as /v1/replicas and metrics name it: "scope", "revision", "identity_key", "model",
// "served_model", "frame_versions", "block_size" or "proof".
std::string_view name_of(Difference difference);

// A difference between two processes.
struct Unfit {
  Difference difference = Difference::Scope;
  // One sentence with both values and a remedy.
  std::string reason;

  bool operator==(const Unfit&) const = default;
};

// Whether an announcement carried a proof of our identity key.
enum class Proof : bool { No, Yes };

// Returns the first difference, or nothing if they fit. A block size that one of both does not know
// is no difference. Pure.
std::optional<Unfit> why_unfit(const Announcement& mine, const Announcement& theirs, Proof proof);

}  // namespace sightline::membership
