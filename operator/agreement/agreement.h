// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/crd/spec.h"

namespace sightline::agreement {

// What frontends, routers, agents and workers of one revision must agree on: everything that makes
// the block identities of two deployments incomparable. The settings of all programs about these
// points are rendered from this one value. A change of any field is a new revision.
struct Agreement {
  std::string model_name;
  // See source_text().
  std::string model_source;
  std::string model_revision;
  // A digest of its text. Empty: the model's own template.
  std::string chat_template;
  std::int64_t block_size = 16;
  // Empty: the engine's own seed.
  std::string hash_seed;
  crd::EventsMode events = crd::EventsMode::Exact;
  // Sorted.
  std::vector<std::string> modalities;
  std::map<std::string, std::int64_t> processor;
  crd::TransferMode transfer = crd::TransferMode::Disabled;
  // A digest of the deployment's key.
  std::string identity_key;

  bool operator==(const Agreement&) const = default;
};

// A digest of a long or secret text: 32 hex digits. Empty for an empty text.
std::string digest_of(std::string_view text);

// Digests of what the operator reads besides the spec, see digest_of().
struct Digests {
  std::string chat_template;
  std::string identity_key;
};

// The agreement of a spec. Pure.
Agreement agreement_of(const crd::Spec& spec, const Digests& digests);

// "hf://…", "pvc://CLAIM/PATH" or "image://REFERENCE//PATH". "hub" if the spec gives no source.
std::string source_text(const crd::Model& model);

// The name of the revision: eight characters of a-z and 0-9, with a letter first. It is part of
// names, labels and NATS subjects. There are 32^7 * 20 names, so two live revisions of one object
// have the same name by chance once in 10^11 changes.
std::string revision_of(const Agreement& agreement);

}  // namespace sightline::agreement
