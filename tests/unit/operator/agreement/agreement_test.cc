// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/agreement/agreement.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::agreement {
namespace {

crd::Spec a_spec() {
  crd::Spec spec;
  spec.model.name = "m";
  spec.model.source = crd::ModelSource{.pvc = crd::PvcSource{.claim_name = "c", .path = "p"}};
  spec.multimodal.processor = {{"max_pixels", 1}, {"min_pixels", 2}};
  return spec;
}

std::string revision(const crd::Spec& spec, const Digests& digests = {}) {
  return revision_of(agreement_of(spec, digests));
}

TEST(Agreement, RevisionFitsIntoNamesAndSubjects) {
  std::set<std::string> names;
  for (int i = 0; i < 1'000; ++i) {
    crd::Spec spec = a_spec();
    spec.kv.block_size = i;
    const std::string name = revision(spec);
    EXPECT_EQ(name.size(), 8U);
    EXPECT_TRUE(name[0] >= 'a' && name[0] <= 'z') << name;
    EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    })) << name;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 1'000U);
}

// Another name would replace all workers of all deployments when the operator is upgraded.
TEST(Agreement, TheRevisionOfASpecIsTheSameInEveryRelease) {
  EXPECT_EQ(revision(a_spec(), {.chat_template = "t", .identity_key = "k"}), "rj7yfzkz");
}

TEST(Agreement, WhatMakesBlocksIncomparableIsAnotherRevision) {
  using Change = std::function<void(crd::Spec&)>;
  const std::vector<Change> changes = {
      [](crd::Spec& s) { s.model.name = "n"; },
      [](crd::Spec& s) { s.model.source->pvc->claim_name = "d"; },
      [](crd::Spec& s) { s.model.source->pvc->path = "q"; },
      [](crd::Spec& s) { s.model.source.reset(); },
      [](crd::Spec& s) { s.model.source = crd::ModelSource{.uri = "hf://a/b"}; },
      [](crd::Spec& s) {
        s.model.source = crd::ModelSource{.image = crd::ImageSource{.reference = "i"}};
      },
      [](crd::Spec& s) { s.model.revision = "2"; },
      [](crd::Spec& s) { s.kv.block_size = 32; },
      [](crd::Spec& s) { s.kv.hash_seed = "0"; },
      [](crd::Spec& s) { s.kv.events = crd::EventsMode::Approximate; },
      [](crd::Spec& s) { s.multimodal.modalities.clear(); },
      [](crd::Spec& s) { s.multimodal.processor.erase("min_pixels"); },
      [](crd::Spec& s) { s.multimodal.processor["max_pixels"] = 3; },
      [](crd::Spec& s) { s.transfer.mode = crd::TransferMode::Shm; },
  };
  std::set<std::string> names = {revision(a_spec()), revision(a_spec(), {.chat_template = "t"}),
                                 revision(a_spec(), {.identity_key = "t"})};
  for (const Change& change : changes) {
    crd::Spec spec = a_spec();
    change(spec);
    names.insert(revision(spec));
  }
  EXPECT_EQ(names.size(), changes.size() + 3);
}

TEST(Agreement, WhatElseChangesLeavesTheRevisionAsItIs) {
  using Change = std::function<void(crd::Spec&)>;
  const std::vector<Change> changes = {
      [](crd::Spec& s) { s.pools.resize(3); },
      [](crd::Spec& s) { s.router.replicas = 5; },
      [](crd::Spec& s) { s.router.weights.overlap_credit = "2"; },
      [](crd::Spec& s) { s.image = "i"; },
      [](crd::Spec& s) { s.model.max_model_len = 1; },
      [](crd::Spec& s) { s.rollout.max_surge = 9; },
      [](crd::Spec& s) { s.restart = "x"; },
  };
  for (const Change& change : changes) {
    crd::Spec spec = a_spec();
    change(spec);
    EXPECT_EQ(revision(spec), revision(a_spec()));
  }
}

TEST(Agreement, FieldsDoNotRunIntoEachOther) {
  crd::Spec one = a_spec();
  one.model.revision = "ab";
  crd::Spec other = a_spec();
  other.model.revision = "a";
  EXPECT_NE(revision(one, {.chat_template = ""}), revision(other, {.chat_template = "b"}));
}

}  // namespace
}  // namespace sightline::agreement
