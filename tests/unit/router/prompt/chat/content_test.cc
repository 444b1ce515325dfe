// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/content.h"

#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/python/print.h"

namespace sightline::chat {
namespace {

// Returns a content as the template gets it, then its media parts: "part:kind".
std::string seen(ContentFormat format, std::string content, std::string_view role = "user") {
  const auto document = json::Document::parse(R"({"c": )" + std::move(content) + "}");
  EXPECT_TRUE(document.ok());
  const MediaPlaceholders placeholders{"<img>", "<vid>", ""};
  const auto parsed = parse_content(document->root().find("c"), role, {format, placeholders});
  if (!parsed.ok()) return "error: " + parsed.error().message;
  python::Meter meter(100'000);
  std::string out = python::repr_of(parsed->value, meter);
  for (const MediaSlot& slot : parsed->media) {
    out += " " + std::to_string(slot.part) + ":" + std::to_string(static_cast<int>(slot.kind));
  }
  return out;
}

constexpr const char* kMixed = R"([{"type": "text", "text": "a"}, {"image_url": "u"},
    {"type": "input_audio", "input_audio": {}}, {"type": "video_url", "video_url": {"url": "v"}},
    {"type": "image_embeds", "image_embeds": null, "uuid": "1"}, "b"])";

TEST(Content, PartsKeepTheirOrderInLists) {
  EXPECT_EQ(seen(ContentFormat::OpenAi, kMixed),
            "[{'type': 'text', 'text': 'a'}, {'type': 'image'}, {'type': 'audio'}, "
            "{'type': 'video'}, {'type': 'image'}, {'type': 'text', 'text': 'b'}] "
            "1:0 2:2 3:1 4:0");
}

TEST(Content, PlaceholdersComeBeforeFlatTexts) {
  EXPECT_EQ(seen(ContentFormat::String, kMixed), "'<img>\\n<img>\\n<vid>\\na\\nb' 1:0 2:2 3:1 4:0");
}

TEST(Content, PlaceholdersInTheTextCountAsPlaced) {
  EXPECT_EQ(seen(ContentFormat::String, R"(["a <img>", {"image_url": "u"}, {"image_url": "v"}])"),
            "'<img>\\na <img>' 1:0 2:0");
  EXPECT_EQ(seen(ContentFormat::String, R"(["<vid>"])"), "'<vid>'");
}

TEST(Content, UuidMakesTheFieldsDecideTheKind) {
  EXPECT_EQ(seen(ContentFormat::OpenAi,
                 R"([{"type": "image_url", "video_url": {"url": "v"}, "uuid": "x"}])"),
            "[{'type': 'video'}] 0:1");
  EXPECT_EQ(seen(ContentFormat::OpenAi, R"([{"type": "image_url", "uuid": "x"}])"),
            "error: Missing 'type' field in multimodal part.");
}

TEST(Content, ThinkingRefusalsAndToolReferencesAreTexts) {
  EXPECT_EQ(seen(ContentFormat::String, R"([{"type": "thinking", "thinking": "t"},
                 {"type": "refusal", "refusal": null}, {"type": "refusal", "refusal": "r"},
                 {"type": "tool_reference", "name": "n"}])"),
            "'t\\nr\\nn'");
  EXPECT_EQ(seen(ContentFormat::OpenAi, R"([{"type": "thinking", "thinking": "t"},
                 {"type": "tool_reference", "name": "n"}])"),
            "[{'type': 'text', 'text': 't'}, {'type': 'tool_reference', 'name': 'n'}]");
}

TEST(Content, OnlyPureToolTextsAreJoined) {
  EXPECT_EQ(seen(ContentFormat::OpenAi, R"(["a", "b"])", "tool"), "'a\\nb'");
  EXPECT_EQ(seen(ContentFormat::OpenAi, R"([])", "tool"), "''");
  EXPECT_EQ(seen(ContentFormat::OpenAi, R"(["a", {"image_url": "u"}])", "tool"),
            "[{'type': 'text', 'text': 'a'}, {'type': 'image'}] 1:0");
}

TEST(Content, OnlySystemTextsLoseTheBillingLine) {
  const std::string line =
      R"(["x-anthropic-billing-header: 1\nrest", "x-anthropic-billing-header"])";
  EXPECT_EQ(seen(ContentFormat::String, line, "system"), "'rest'");
  EXPECT_EQ(seen(ContentFormat::String, R"("x-anthropic-billing-header")", "user"),
            "'x-anthropic-billing-header'");
}

}  // namespace
}  // namespace sightline::chat
