// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/fitness.h"

namespace sightline::membership {
namespace {

// The name of the compared thing, and how a person makes it equal.
struct Row {
  std::string_view what;
  std::string_view remedy;
};

Unfit unfit(Difference difference, const Row& row, std::string_view theirs, std::string_view mine) {
  return {difference, "its " + std::string(row.what) + " is " +
                          (theirs.empty() ? "not set" : std::string(theirs)) + ", ours is " +
                          (mine.empty() ? "not set" : std::string(mine)) + ": " +
                          std::string(row.remedy)};
}

std::string range_of(const FrameVersions& frames) {
  return std::to_string(frames.min) + " to " + std::to_string(frames.max);
}

}  // namespace

std::string_view name_of(Difference difference) {
  switch (difference) {
    case Difference::Scope:
      return "scope";
    case Difference::Revision:
      return "revision";
    case Difference::IdentityKey:
      return "identity_key";
    case Difference::Model:
      return "model";
    case Difference::ServedModel:
      return "served_model";
    case Difference::FrameVersions:
      return "frame_versions";
    case Difference::BlockSize:
      return "block_size";
    case Difference::Proof:
      return "proof";
  }
  return "scope";
}

std::optional<Unfit> why_unfit(const Announcement& mine, const Announcement& theirs, Proof proof) {
  // The order is that of Difference: a wide difference explains the narrower ones.
  if (theirs.scope != mine.scope) {
    return unfit(Difference::Scope, {"scope", "give both the same --scope"}, theirs.scope,
                 mine.scope);
  }
  if (theirs.revision != mine.revision) {
    return unfit(Difference::Revision,
                 {"revision", "only members with the same --revision work together"},
                 theirs.revision, mine.revision);
  }
  if (theirs.key_check != mine.key_check) {
    return unfit(Difference::IdentityKey,
                 {"identity key's check value", "give both the same --identity-key-file"},
                 theirs.key_check, mine.key_check);
  }
  if (theirs.model_digest != mine.model_digest) {
    return unfit(Difference::Model,
                 {"model files' digest", "give both the same model files (--model-path)"},
                 theirs.model_digest, mine.model_digest);
  }
  if (theirs.served_model != mine.served_model) {
    return unfit(Difference::ServedModel,
                 {"served model", "give both the same first --served-model-name"},
                 theirs.served_model, mine.served_model);
  }
  if (theirs.frames.max < mine.frames.min || mine.frames.max < theirs.frames.min) {
    return unfit(Difference::FrameVersions,
                 {"range of frame versions", "run releases with a common frame version"},
                 range_of(theirs.frames), range_of(mine.frames));
  }
  // 0 means that the size is not known, which is no difference.
  if (theirs.block_size != mine.block_size && theirs.block_size != 0 && mine.block_size != 0) {
    return unfit(Difference::BlockSize,
                 {"block size", "engines of one scope must have the same block size"},
                 std::to_string(theirs.block_size), std::to_string(mine.block_size));
  }
  // A proof fails also because of a difference above. So it is named last.
  if (proof == Proof::No) {
    return Unfit{Difference::Proof,
                 "its announcement does not prove the identity key: it is forged or damaged"};
  }
  return std::nullopt;
}

}  // namespace sightline::membership
