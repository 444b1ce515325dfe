// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/vllm/vllm.h"

#include <gtest/gtest.h>

#include "tests/support/edited.h"

namespace sightline::vllm {
namespace {

using openai::ApiRequest;
using openai::EditedBody;
using openai::joined;
using openai::parsed_chat;

TEST(Vllm, OmitsZerosUpToVersion023WhenCertain) {
  for (const std::string_view text : {"0.17.1", "0.19.1+cpu", "0.23.0", "0.23.4"}) {
    EXPECT_TRUE(vllm().leaves_zero_out(family::parse_version(text))) << text;
  }
  for (const std::string_view text :
       {"0.24.0", "0.26.0", "0.32.0", "1.0.0", "0.23.1.dev5+g123", "0.24.0rc1", "unknown"}) {
    EXPECT_FALSE(vllm().leaves_zero_out(family::parse_version(text))) << text;
  }
}

TEST(Vllm, NeverReportsReusedBlocksAgain) {
  const ApiRequest request = parsed_chat(
      R"({"messages":[],"vllm_xargs":{"a":1,"kv_cache_report_mode":"full"},"vllm_xargs":[],)"
      R"("vllm_xargs":{"kv_cache_report\u005fmode":["x"],"kv_cache_report_mode":"full"}})");
  EditedBody body(request.document.text());
  vllm().edit(body, request, {});
  EXPECT_EQ(
      joined(body),
      R"({"messages":[],"vllm_xargs":{"a":1,"kv_cache_report_mode":"incremental"},"vllm_xargs":[],)"
      R"("vllm_xargs":{"kv_cache_report\u005fmode":"incremental","kv_cache_report_mode":"incremental"}})");
}

}  // namespace
}  // namespace sightline::vllm
