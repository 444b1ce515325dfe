// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/api_target.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::openai {
namespace {

TEST(ApiTarget, EverySpellingOfAPathIsReadAsTheSamePath) {
  struct Case {
    std::string target;
    std::string want_path;
    std::string want_query;
  };
  for (const auto& test : std::vector<Case>{
           {"/v1/chat/completions", "/v1/chat/completions", ""},
           {"/v1/chat/complet%69ons", "/v1/chat/completions", ""},
           {"/v1/%63%68%61%74/completions?a=%69&b", "/v1/chat/completions", "?a=%69&b"},
           {"http://x/v1/embeddings", "/v1/embeddings", ""},
           {"HTTPS://user@x:1/v1/embeddings?q=/../", "/v1/embeddings", "?q=/../"},
           {"http://x", "/", ""},
           {"http://x?q", "/", "?q"},
           {"/", "/", ""},
           {"/v1/models?", "/v1/models", "?"},
           {"/v1/%e4%b8%ad/%3f%25", "/v1/%e4%b8%ad/%3f%25", ""},
           {"/v1/a..b/.c", "/v1/a..b/.c", ""}}) {
    const auto read = read_target(test.target);
    ASSERT_TRUE(read.ok()) << test.target << ": " << read.error().message;
    EXPECT_EQ(read->path, test.want_path) << test.target;
    EXPECT_EQ(read->query, test.want_query) << test.target;
  }
}

TEST(ApiTarget, WhatTwoServersCouldReadDifferentlyIsRefused) {
  for (const std::string target : {"/v1/chat%2fcompletions",
                                   "/v1/chat%2Fcompletions",
                                   "/v1%5cchat",
                                   "/v1\\chat",
                                   "/v1/a%00",
                                   "/v1/chat/../chat/completions",
                                   "/v1/./models",
                                   "/v1/%2e%2e/v1/models",
                                   "/v1/%2E/models",
                                   "/v1/..",
                                   "//v1/models",
                                   "/v1//models",
                                   "//",
                                   "/v1/a%",
                                   "/v1/a%4",
                                   "/v1/a%zz",
                                   "/v1/a#b",
                                   "/v1/a?b#c",
                                   "v1/models",
                                   "*",
                                   "x:443",
                                   "",
                                   "ftp://x/v1/models",
                                   "http:///v1/models",
                                   "http://",
                                   "http:/v1/models"}) {
    const auto read = read_target(target);
    ASSERT_FALSE(read.ok()) << target;
    EXPECT_EQ(read.error().code, ErrorCode::InvalidArgument) << target;
    EXPECT_EQ(read.error().blame, Blame::Client) << target;
  }
  for (const std::string target : {"/v1/chat/completions/", "/v1/", "/v1/models/?x"}) {
    const auto read = read_target(target);
    ASSERT_FALSE(read.ok()) << target;
    EXPECT_EQ(read.error().code, ErrorCode::NotFound) << target;
  }
}

TEST(ApiTarget, TheNameOfAModelMayHaveSlashesAndEscapes) {
  EXPECT_EQ(model_of("/v1/models/org/name"), "org/name");
  EXPECT_EQ(model_of("/v1/models/org%2Fname?x=1"), "org/name");
  EXPECT_EQ(model_of("http://h:1/v1/models/a%20b"), "a b");
  EXPECT_EQ(model_of("/v1/models/a%zz%2"), "a%zz%2");
  EXPECT_EQ(model_of("/v1/models/../x/"), "../x/");
  for (const char* target :
       {"/v1/models", "/v1/models/", "/v1/models?x", "/v1/modelsx/a", "*", ""}) {
    EXPECT_EQ(model_of(target), std::nullopt) << target;
  }
}

TEST(ApiTarget, DistinguishesPathsWithAGeneratingPrefix) {
  for (const std::string path : {"/v1/chat/completions", "/v1/completions", "/V1/Chat/COMPLETIONS",
                                 "/v1/chat/completions/batch", "/v1/chat/completions;x",
                                 "/v1/completions/render", "/v1/chat/completions%3f"}) {
    EXPECT_TRUE(is_like_generating(path)) << path;
  }
  for (const std::string path :
       {"/v1/embeddings", "/v1/chat", "/v1/responses", "/", "/v1/models"}) {
    EXPECT_FALSE(is_like_generating(path)) << path;
  }
}

}  // namespace
}  // namespace sightline::openai
