// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/sglang/sglang.h"

#include <gtest/gtest.h>

#include "tests/support/edited.h"

namespace sightline::sglang {
namespace {

using openai::EditedBody;
using openai::joined;
using openai::parsed_chat;

std::string edited(const std::string& body) {
  const auto request = parsed_chat(body);
  EditedBody result(request.document.text());
  sglang().edit(result, request, {});
  return joined(result);
}

TEST(Sglang, ExtraKeyBecomesASaltOfEvents) {
  EXPECT_EQ(edited(R"({"messages":[],"extra_key":"x"})"),
            R"({"messages":[],"extra_key":null,"cache_salt":"0::\"x\""})");
  EXPECT_EQ(edited(R"({"messages":[],"cache_salt":"a:","extra_key":["x",1]})"),
            R"({"messages":[],"cache_salt":"2:a::[\"x\",1]","extra_key":null})");
}

TEST(Sglang, SaltAndExtraKeyOfOneTextStayApart) {
  EXPECT_NE(edited(R"({"messages":[],"cache_salt":"a:b","extra_key":1})"),
            edited(R"({"messages":[],"cache_salt":"a","extra_key":"b:1"})"));
}

TEST(Sglang, TheRankIsNotTheClientsToChoose) {
  EXPECT_EQ(edited(R"({"messages":[],"routed_dp_rank":1,"data_parallel_rank":0})"),
            R"({"messages":[],"routed_dp_rank":null,"data_parallel_rank":null})");
}

TEST(Sglang, OtherBodiesKeepTheirBytes) {
  const std::string body =
      R"({"messages":[],"extra_key":null,"cache_salt":"s","vllm_xargs":{"kv_cache_report_mode":"full"}})";
  EXPECT_EQ(edited(body), body);
}

TEST(Sglang, PredictsNoReuseThatKeysCannotShow) {
  for (const char* field :
       {R"("extra_key":"x")", R"("lora_path":"ad")", R"("echo":true,"logprobs":2)"}) {
    const auto request = parsed_chat(std::string(R"({"messages":[],)") + field + "}");
    EXPECT_FALSE(sglang().unpredictable(request).empty()) << field;
  }
  EXPECT_TRUE(sglang().unpredictable(parsed_chat(R"({"messages":[],"extra_key":null})")).empty());
}

TEST(Sglang, ReusesWholeBlocksBeforeTheLastToken) {
  EXPECT_EQ(sglang().reused_blocks(4, 64, 16), 3U);
  EXPECT_EQ(sglang().reused_blocks(4, 65, 16), 4U);
  EXPECT_EQ(sglang().reused_blocks(9, 10, 1), 9U);
  EXPECT_EQ(sglang().reused_blocks(10, 10, 1), 9U);
}

}  // namespace
}  // namespace sightline::sglang
