// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/family/models.h"

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace sightline::family {
namespace {

std::string recorded(const std::string& name) {
  std::ifstream file(test::in_sources("tests/data/fleet/") + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(EngineModels, DistinguishesAdaptersFromBaseModels) {
  const auto models = parse_models(recorded("models-lora.json"));
  ASSERT_TRUE(models.ok());
  constexpr double kAsked_s = 1795263881;
  EXPECT_EQ(*models,
            (std::vector<ServedModel>{{"tiny", "", 4096, "models/tiny-qwen2-vl", kAsked_s, "vllm"},
                                      {"ad", "tiny", 0, "models/lora-ad", kAsked_s, "vllm"}}));
}

TEST(EngineModels, WhatIsNoModelListIsRefused) {
  std::string many = "{\"data\":[";
  for (int i = 0; i < 257; ++i) many += "{\"id\":\"m\"},";
  many.back() = ']';
  for (const std::string& body :
       {std::string(), std::string("[]"), std::string("{}"), std::string("{\"data\":{}}"),
        std::string("{\"data\":[1]}"), std::string("{\"data\":[{\"id\":\"\"}]}"),
        std::string("{\"data\":[{\"id\":7}]}"), many + "}",
        "{\"data\":[{\"id\":\"" + std::string(300, 'x') + "\"}]}", std::string(100'000, '[')}) {
    const auto models = parse_models(body);
    ASSERT_FALSE(models.ok()) << body.substr(0, 80);
    EXPECT_EQ(models.error().code, ErrorCode::Corrupt);
  }
}

TEST(EngineModels, ALengthThatCannotBeIsNotKnown) {
  for (const char* length : {"-1", "0", "1e3", "1.5", "\"4096\"", "99999999999999999999"}) {
    const auto models =
        parse_models("{\"data\":[{\"id\":\"m\",\"max_model_len\":" + std::string(length) + "}]}");
    ASSERT_TRUE(models.ok()) << length;
    EXPECT_EQ(models->at(0).max_model_len, 0u) << length;
  }
}

TEST(EngineModels, AnEngineSaysWhetherItSleeps) {
  EXPECT_EQ(*parse_sleep(R"({"is_sleeping": true})", "/is_sleeping"), true);
  EXPECT_EQ(*parse_sleep(R"({"is_sleeping": false})", "/is_sleeping"), false);
  for (const char* body : {"{}", "true", R"({"is_sleeping": 1})", "", R"({"is_sleeping": null})"}) {
    const auto read = parse_sleep(body, "/is_sleeping");
    ASSERT_FALSE(read.ok()) << body;
    EXPECT_EQ(read.error().blame, Blame::Worker) << body;
  }
}

}  // namespace
}  // namespace sightline::family
