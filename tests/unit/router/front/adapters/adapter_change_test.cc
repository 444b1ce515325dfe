// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/adapters/adapter_change.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::adapters {
namespace {

TEST(AdapterChange, RecognisesThePathsOfBothEngineFamilies) {
  for (const char* path : {"/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/load_lora_adapter",
                           "/unload_lora_adapter"}) {
    EXPECT_TRUE(changes_adapters(path)) << path;
  }
  for (const char* path : {"/v1/load_lora_adapters", "/v2/load_lora_adapter", "/v1",
                           "/v1/v1/load_lora_adapter", "/v1/chat/completions", ""}) {
    EXPECT_FALSE(changes_adapters(path)) << path;
  }
}

TEST(AdapterChange, ReadsAllFieldsFromTheBody) {
  const auto load = read_change("/v1/load_lora_adapter",
                                R"({"lora_name":"a","lora_path":"/a","load_inplace":true})");
  ASSERT_TRUE(load.ok());
  EXPECT_TRUE(load->is_load);
  EXPECT_EQ(load->name, "a");
  EXPECT_EQ(load->source, "/a");
  EXPECT_TRUE(load->is_in_place);
  const auto unload = read_change("/unload_lora_adapter", R"({"lora_name":"a"})");
  ASSERT_TRUE(unload.ok());
  EXPECT_FALSE(unload->is_load);
  EXPECT_FALSE(unload->is_in_place);
}

TEST(AdapterChange, RefusesBodyWithoutNameAndLongBody) {
  for (const char* body : {"", "[]", "{}", R"({"lora_name":""})", R"({"lora_name":1})", "{"}) {
    const auto change = read_change("/v1/load_lora_adapter", body);
    ASSERT_FALSE(change.ok()) << body;
    EXPECT_EQ(change.error().code, ErrorCode::InvalidArgument) << body;
  }
  const std::string longest = R"({"lora_name":"a"})";
  const std::string spaces(kChangeBytesMax - longest.size(), ' ');
  EXPECT_TRUE(read_change("/v1/load_lora_adapter", longest + spaces).ok());
  const auto longer = read_change("/v1/load_lora_adapter", longest + spaces + " ");
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().code, ErrorCode::TooLarge);
}

TEST(AdapterChange, SkipsWorkerThatIsInTheWantedState) {
  const AdapterChange load{
      .is_load = true, .path = "/v1/load_lora_adapter", .name = "a", .source = "/a"};
  EXPECT_TRUE(load.is_done_at("/a"));
  EXPECT_FALSE(load.is_done_at("/b"));
  EXPECT_FALSE(load.is_done_at(""));
  AdapterChange again = load;
  again.is_in_place = true;
  EXPECT_FALSE(again.is_done_at("/a"));
  const AdapterChange unload{.path = "/v1/unload_lora_adapter", .name = "a"};
  EXPECT_TRUE(unload.is_done_at(""));
  EXPECT_FALSE(unload.is_done_at("/a"));
}

TEST(AdapterChange, UndoIsTheOppositeOfTheSameApi) {
  const AdapterChange load{
      .is_load = true, .path = "/v1/load_lora_adapter", .name = "a\"", .source = "/a"};
  EXPECT_EQ(undo_of(load, "").path, "/v1/unload_lora_adapter");
  EXPECT_EQ(undo_of(load, "").body, R"({"lora_name":"a\""})");
  EXPECT_EQ(undo_of(load, "/old").path, "/v1/load_lora_adapter");
  EXPECT_EQ(undo_of(load, "/old").body,
            R"({"lora_name":"a\"","lora_path":"/old","load_inplace":true})");
  const AdapterChange unload{.path = "/unload_lora_adapter", .name = "a"};
  EXPECT_EQ(undo_of(unload, "/a").path, "/load_lora_adapter");
  EXPECT_EQ(undo_of(unload, "/a").body, R"({"lora_name":"a","lora_path":"/a"})");
}

}  // namespace
}  // namespace sightline::adapters
