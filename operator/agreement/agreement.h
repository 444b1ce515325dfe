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

// What frontends, routers, agents and workers of one revision have in common: whatever makes block
// identities of two deployments incomparable. All of it that a program is told is rendered from
// this one value. A change of any field is a new revision.
struct Agreement {
  std::string model_name;
  std::string model_source;  // see source_text()
  std::string model_revision;
  std::string chat_template;  // digest of its text; empty: the model's own
  std::int64_t block_size = 16;
  std::string hash_seed;  // empty: the engine's own
  crd::EventsMode events = crd::EventsMode::Exact;
  std::vector<std::string> modalities;  // sorted
  std::map<std::string, std::int64_t> processor;
  crd::TransferMode transfer = crd::TransferMode::Disabled;
  std::string identity_key;  // digest of the deployment's key

  bool operator==(const Agreement&) const = default;
};

// Of a text that must not be shown, or is long: 32 hex digits; empty of an empty one.
std::string digest_of(std::string_view text);

// What the operator reads beside the spec; see digest_of().
struct Digests {
  std::string chat_template;
  std::string identity_key;
};

Agreement agreement_of(const crd::Spec& spec, const Digests& digests);

// "hf://…", "pvc://CLAIM/PATH", "image://REFERENCE//PATH"; "hub" where none is given.
std::string source_text(const crd::Model& model);

// Name of the revision, eight characters of a-z and 0-9 that begin with a letter: part of names,
// labels and NATS subjects. Of 32^7 * 20 that there are, two live revisions of one object share one
// by chance once in 10^11 changes.
std::string revision_of(const Agreement& agreement);

}  // namespace sightline::agreement
