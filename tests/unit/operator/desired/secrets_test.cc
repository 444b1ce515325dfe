// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/secrets.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "common/base/bytes.h"
#include "common/contract/identity_key.h"
#include "common/nats/credentials.h"
#include "common/runtime/token_file.h"

#include "operator/desired/program_settings.h"
#include "operator/kube/object/metadata.h"
#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

KeyBytes bytes(std::uint8_t first) {
  KeyBytes made{};
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<std::uint8_t>(first + i);
  return made;
}

const Draws kDraws = {.identity = bytes(0),
                      .admin = bytes(32),
                      .selection = bytes(64),
                      .drain = bytes(80),
                      .nats_frontend = bytes(96),
                      .nats_router = bytes(128),
                      .nats_agent = bytes(160),
                      .nats_cluster = bytes(192)};

std::vector<Value> secrets_for(const crd::Spec& spec) {
  const RenderInput input = test::render_input_of(spec);
  return secrets(input.owner, input.owner_reference, spec.nats, kDraws);
}

std::string value(const std::vector<Value>& all, const std::string& name, std::string_view key) {
  return secret_value(test::find(all, "Secret", name), key).value_or("none");
}

TEST(Secrets, TheIdentityKeyIsTheBytesThatWereDrawn) {
  const auto all = secrets_for(test::small_spec());
  const std::string key = value(all, "shop-identity", kIdentityKey);
  EXPECT_EQ(key, std::string(text_of(kDraws.identity)));
  EXPECT_TRUE(contract::parse_identity_key(key).ok());
}

TEST(Secrets, EachRevisionOwnsItsKeySecret) {
  const RenderInput input = test::render_input_of(test::small_spec());
  Value config_map = revision_config_map(input);
  config_map.set({"metadata", "uid"}, "uid-1");
  const Value secret = revision_identity(input, config_map, text_of(kDraws.identity));
  EXPECT_EQ(secret.at({"metadata", "name"}).text(), "shop-" + input.revision + "-identity");
  EXPECT_EQ(secret_value(secret, kIdentityKey), std::string(text_of(kDraws.identity)));
  EXPECT_EQ(secret["immutable"].boolean(), true);
  EXPECT_EQ(object::controller_uid_of(secret), "uid-1");
  const std::string pods = Value(test::all_objects(input)).to_text();
  EXPECT_NE(pods.find("shop-" + input.revision + "-identity"), std::string::npos);
  EXPECT_EQ(pods.find("shop-identity"), std::string::npos);
}

TEST(Secrets, TokensAreWhatProgramsTakeAndDiffer) {
  const auto all = secrets_for(test::small_spec());
  std::set<std::string> tokens;
  for (const std::string_view key : {kAdminToken, kSelectionToken}) {
    const auto parsed = runtime::parse_tokens(value(all, "shop-tokens", key));
    ASSERT_TRUE(parsed.ok());
    ASSERT_EQ(parsed->size(), 1U);
    tokens.insert(parsed->front());
  }
  const auto drain = runtime::parse_tokens(value(all, "shop-drain", kDrainToken));
  ASSERT_TRUE(drain.ok());
  tokens.insert(drain->begin(), drain->end());
  EXPECT_EQ(tokens.size(), 3U);
}

TEST(Secrets, SeedOfEachNatsUserFitsItsPublicKey) {
  const auto all = secrets_for(test::small_spec());
  std::set<std::string> seeds;
  for (const std::string_view user : kNatsUsers) {
    const std::string name = "shop-nats-" + std::string(user);
    const std::string seed = value(all, name, kSeedKey);
    const auto shown = nats::nkey_of_seed(seed);
    ASSERT_TRUE(shown.ok()) << name;
    EXPECT_EQ(*shown, value(all, name, kPublicKey));
    EXPECT_TRUE(shown->starts_with("U"));
    seeds.insert(seed);
  }
  EXPECT_EQ(seeds.size(), 3U);
}

TEST(Secrets, AnExternalNatsHasNoneOfOurs) {
  crd::Spec spec = test::small_spec();
  spec.nats.external.emplace();
  EXPECT_EQ(secrets_for(spec).size(), 3U);
}

TEST(Secrets, EachBelongsToTheObjectAndIsOpaque) {
  const auto all = secrets_for(test::small_spec());
  EXPECT_EQ(all.size(), 7U);
  for (const Value& secret : all) {
    EXPECT_EQ(secret["type"].text(), "Opaque");
    EXPECT_EQ(secret.at({"metadata", "labels", "sightline.dev/router"}).text(), "shop");
    EXPECT_EQ(secret.at({"metadata", "ownerReferences"}).size(), 1U);
  }
}

TEST(Secrets, WhatIsNoBase64IsNoValue) {
  const auto of = [](const std::string& text) {
    Value secret = Value::object();
    secret.set({"data", "k"}, text);
    return secret_value(secret, "k");
  };
  EXPECT_EQ(of("YWI="), "ab");
  EXPECT_EQ(of("YQ=="), "a");
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("YWI"), std::nullopt);
  EXPECT_EQ(of("Y*I="), std::nullopt);
  EXPECT_EQ(secret_value(Value(), "k"), std::nullopt);
}

TEST(Secrets, NothingOfThemStandsInWhatIsApplied) {
  const auto all = secrets_for(test::small_spec());
  const std::string text =
      Value(test::all_objects(test::render_input_of(test::small_spec()))).to_text();
  for (const Value& secret : all) {
    for (const auto& [key, encoded] : secret["data"].members()) {
      if (key == kPublicKey) continue;
      EXPECT_EQ(text.find(std::string(encoded.text())), std::string::npos) << key;
      EXPECT_EQ(text.find(*secret_value(secret, key)), std::string::npos) << key;
    }
  }
}

}  // namespace
}  // namespace sightline::desired
