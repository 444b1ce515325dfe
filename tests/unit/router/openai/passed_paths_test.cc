// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/passed_paths.h"

#include <vector>

#include <gtest/gtest.h>

namespace sightline::openai {
namespace {

TEST(PassedPaths, InferenceEndpointsArePassedWithTheirMethodsOnly) {
  EXPECT_EQ(passed_methods("/v1/embeddings", {}), "POST");
  EXPECT_EQ(passed_methods("/v1/responses/resp_1", {}), "GET, HEAD, DELETE");
  EXPECT_EQ(passed_methods("/v1/responses/resp_1/cancel", {}), "POST");
  EXPECT_TRUE(has_method("GET, HEAD, DELETE", "HEAD"));
  EXPECT_FALSE(has_method("GET, HEAD, DELETE", "POST"));
  EXPECT_FALSE(has_method("GET, HEAD, DELETE", "GET, HEAD"));
  EXPECT_FALSE(has_method("", ""));
}

TEST(PassedPaths, WhatLoadsConfiguresOrIsUnknownIsNot) {
  for (const char* path :
       {"/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/files", "/inference/v1/generate",
        "/sleep", "/collective_rpc", "/reset_prefix_cache", "/invocations", "/v1/embeddings/x",
        "/V1/embeddings", "/v1/responses/a/b", "/v1/responses/a/cancel/b", "/v1", "/",
        "/v1/chat/completions/batch"}) {
    EXPECT_EQ(passed_methods(path, {}), "") << path;
  }
}

TEST(PassedPaths, ASettingAddsToThemWithEveryMethod) {
  const std::vector<std::string> added{"/v1/load_lora_adapter", "/v1/files/*/content"};
  EXPECT_EQ(passed_methods("/v1/load_lora_adapter", added), kAnyMethod);
  EXPECT_EQ(passed_methods("/v1/files/f-1/content", added), kAnyMethod);
  EXPECT_EQ(passed_methods("/v1/files/content", added), "");
  EXPECT_EQ(passed_methods("/v1/files/a/b/content", added), "");
  EXPECT_TRUE(has_method(kAnyMethod, "PATCH"));
}

}  // namespace
}  // namespace sightline::openai
