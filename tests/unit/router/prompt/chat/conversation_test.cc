// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/conversation.h"

#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/python/print.h"

namespace sightline::chat {
namespace {

const MediaPlaceholders kPlaceholders{"<img>", "<vid>", "<aud>"};

std::string repr(const jinja::Value& value) {
  python::Meter meter(100'000);
  return python::repr_of(value, meter);
}

json::Document parse(std::string text) {
  auto document = json::Document::parse(std::move(text));
  EXPECT_TRUE(document.ok());
  return std::move(document).value();
}

TEST(Conversation, MediaSlotsCountMessagesAndParts) {
  const auto document = parse(R"([{"role": "user", "content": [{"image_url": "1"}]},
      {"role": "assistant", "content": "x"},
      {"role": "user", "content": ["t", {"video_url": "2"}, {"image_url": "3"}]}])");
  const auto built = build_conversation(document.root(), {ContentFormat::OpenAi, kPlaceholders});
  ASSERT_TRUE(built.ok());
  ASSERT_EQ(built->media.size(), 3U);
  EXPECT_EQ(built->media[1].message, 2U);
  EXPECT_EQ(built->media[1].part, 1U);
  EXPECT_EQ(built->media[1].kind, MediaKind::Video);
  EXPECT_EQ(built->media[2].part, 2U);
}

TEST(Conversation, ParsedArgumentsLiveAsLongAsTheConversation) {
  const auto document = parse(R"([{"role": "assistant", "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"a\": \"first\"}"}},
      {"function": {"name": "g", "arguments": " {\"b\": {\"c\": \"sécond\"}} "}}]}])");
  auto built = build_conversation(document.root(), {ContentFormat::String, kPlaceholders});
  ASSERT_TRUE(built.ok());
  const Conversation moved = std::move(built).value();
  EXPECT_EQ(repr(moved.messages),
            "[{'role': 'assistant', 'content': '', 'tool_calls': [{'function': {'arguments': "
            "{'a': 'first'}, 'name': 'f'}}, {'function': {'arguments': {'b': {'c': 'sécond'}}, "
            "'name': 'g'}}]}]");
}

TEST(Conversation, OneLeadingSystemMessageIsNotMerged) {
  const auto document = parse(R"([{"role": "developer", "content": [{"type": "text", "text": "d"}],
      "tools": [1]}, {"role": "user", "content": "u"}])");
  const auto built = build_conversation(document.root(), {ContentFormat::OpenAi, kPlaceholders});
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(repr(without_developer_role(built->messages)),
            "[{'role': 'system', 'content': [{'type': 'text', 'text': 'd'}]}, "
            "{'role': 'user', 'content': [{'type': 'text', 'text': 'u'}]}]");
}

TEST(Conversation, MergedSystemMessagesLeaveEmptyOnesOut) {
  const auto document = parse(R"([{"role": "user", "content": "u"},
      {"role": "system", "content": ""}, {"role": "developer", "content": "a"},
      {"role": "system", "content": "b"}])");
  const auto built = build_conversation(document.root(), {ContentFormat::String, kPlaceholders});
  ASSERT_TRUE(built.ok());
  EXPECT_EQ(repr(without_developer_role(built->messages)),
            "[{'role': 'system', 'content': 'a\\n\\nb'}, {'role': 'user', 'content': 'u'}]");
}

TEST(Conversation, ToolsMustBeFunctions) {
  for (const char* tools : {R"([5])", R"([{"type": "custom", "function": {"name": "f"}}])",
                            R"([{"function": {"name": 5}}])", R"([{"function": []}])"}) {
    const auto document = parse(tools);
    const auto built = build_tools(document.root());
    ASSERT_FALSE(built.ok()) << tools;
    EXPECT_EQ(built.error().param, "tools");
  }
}

}  // namespace
}  // namespace sightline::chat
