// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/chat/chat_template.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace sightline::chat {
namespace {

// Prints the input of a template: roles, contents and tools as JSON.
constexpr std::string_view kMirror =
    "{{ messages | tojson }}{{ tools | tojson }}{{ documents | tojson }}";
// The same for templates that loop over the parts of a content.
constexpr std::string_view kPartsMirror =
    "{% for message in messages %}{% for part in message.content %}{% endfor %}{% endfor %}"
    "{{ messages | tojson }}";

std::string golden_source(const std::string& family) {
  std::ifstream file(test::in_sources("tests/data/templates/") + family + ".jinja");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ChatTemplate make(std::string_view source) {
  MediaPlaceholders placeholders{"<image>", "<video>", ""};
  const SpecialTokens tokens{{"bos_token", std::nullopt}, {"eos_token", "<eos>"}};
  auto made = ChatTemplate::create(source, tokens, placeholders);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

// Renders a request's body with the fields that the proxy reads.
Result<RenderedPrompt> render(const ChatTemplate& chat_template, std::string body) {
  const auto document = json::Document::parse(std::move(body));
  EXPECT_TRUE(document.ok());
  const json::Value root = document->root();
  ChatTemplateInput input{.messages = *root.find("messages")};
  input.tools = root.find("tools");
  input.documents = root.find("documents");
  input.template_kwargs = root.find("chat_template_kwargs");
  if (const auto effort = root.find("reasoning_effort")) input.reasoning_effort = effort->string();
  if (const auto flag = root.find("add_generation_prompt")) {
    input.add_generation_prompt = *flag->boolean();
  }
  if (const auto flag = root.find("continue_final_message")) {
    input.continue_final_message = *flag->boolean();
  }
  return chat_template.render(input, WallTime{});
}

std::string text_of(std::string_view source, std::string body) {
  const auto rendered = render(make(source), std::move(body));
  return rendered.ok() ? rendered->text : "error: " + rendered.error().message;
}

std::string messages_seen(std::string_view source, const std::string& messages) {
  return text_of(source, R"({"messages": )" + messages + "}");
}

TEST(ChatTemplate, RendersAQwen2VlRequestWithItsImage) {
  const ChatTemplate qwen = make(golden_source("qwen2_vl"));
  EXPECT_EQ(qwen.format(), ContentFormat::OpenAi);
  const auto rendered = render(qwen, R"({"messages": [{"role": "user", "content": [
      {"type": "text", "text": "What is "},
      {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}, "uuid": "u"},
      {"type": "text", "text": "?"}]}]})");
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(rendered->text,
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\nWhat is <|vision_start|><|image_pad|><|vision_end|>?<|im_end|>\n"
            "<|im_start|>assistant\n");
  ASSERT_EQ(rendered->media.size(), 1U);
  EXPECT_EQ(rendered->media[0].message, 0U);
  EXPECT_EQ(rendered->media[0].part, 1U);
  EXPECT_EQ(rendered->media[0].kind, MediaKind::Image);
}

TEST(ChatTemplate, StringContentBecomesATextPartForPartTemplates) {
  EXPECT_EQ(messages_seen(kPartsMirror, R"([{"role": "user", "content": "Hi"}])"),
            R"([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])");
}

TEST(ChatTemplate, PartsReachTheTemplateByModalityWithUnknownFieldsOnly) {
  EXPECT_EQ(messages_seen(kPartsMirror, R"([{"role": "user", "content": [
      {"type": "image_url", "image_url": {"url": "u"}, "uuid": "x", "min_pixels": 4},
      {"type": "input_audio", "input_audio": {"data": ""}}, {"video_url": "v"},
      {"text": "t", "type": "text", "cache_control": {"type": "e"}}, "plain"]}])"),
            R"([{"role": "user", "content": [{"type": "image", "min_pixels": 4}, )"
            R"({"type": "audio"}, {"type": "video"}, )"
            R"({"type": "text", "text": "t", "cache_control": {"type": "e"}}, )"
            R"({"type": "text", "text": "plain"}]}])");
}

TEST(ChatTemplate, FlatTemplatesGetTextsJoinedBehindTheMissingPlaceholders) {
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "user", "content": [
      {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "1"}},
      {"type": "text", "text": ""}, {"type": "video_url", "video_url": {"url": "2"}},
      {"type": "text", "text": "b"}, {"type": "image_url", "image_url": {"url": "3"}}]}])"),
            "[{\"role\": \"user\", \"content\": "
            "\"<image>\\n<image>\\n<video>\\na\\nb\"}]nullnull");
}

TEST(ChatTemplate, FlatTemplatesKeepPlaceholdersThatTheTextAlreadyHolds) {
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "user", "content": [
      {"type": "text", "text": "see <image> here"},
      {"type": "image_url", "image_url": {"url": "1"}}]}])"),
            R"([{"role": "user", "content": "see <image> here"}]nullnull)");
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "user", "content": [
      {"type": "text", "text": "<image><image>"},
      {"type": "image_url", "image_url": {"url": "1"}}]}])"),
            "error: Found more '<image>' placeholders in input prompt than actual multimodal data "
            "items.");
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "user", "content": [
      {"type": "image_url", "image_url": {"url": "1"}}]}])"),
            R"([{"role": "user", "content": "<image>"}]nullnull)");
}

TEST(ChatTemplate, MissingContentIsEmptyAndNullTextsAreSkipped) {
  const std::string messages =
      R"([{"role": "assistant"}, {"role": "assistant", "content": null},
          {"role": "user", "content": [{"type": "text", "text": null}]}])";
  EXPECT_EQ(messages_seen(kMirror, messages),
            R"([{"role": "assistant", "content": ""}, {"role": "assistant", "content": ""}, )"
            R"({"role": "user", "content": ""}]nullnull)");
  EXPECT_EQ(messages_seen(kPartsMirror, messages),
            R"([{"role": "assistant", "content": []}, {"role": "assistant", "content": []}, )"
            R"({"role": "user", "content": []}])");
}

TEST(ChatTemplate, ToolCallArgumentsBecomeObjects) {
  const auto arguments_seen = [](const std::string& arguments) {
    return text_of("{{ messages[0].tool_calls[0].function.arguments | tojson }}",
                   R"({"messages": [{"role": "assistant", "tool_calls": [{"type": "function",
                       "function": {"name": "f")" +
                       arguments + "}}]}]}");
  };
  EXPECT_EQ(arguments_seen(R"(, "arguments": "{\"a\": [1, 2.50]}")"), R"({"a": [1, 2.5]})");
  EXPECT_EQ(arguments_seen(R"(, "arguments": {"b": null})"), R"({"b": null})");
  EXPECT_EQ(arguments_seen(R"(, "arguments": "")"), "{}");
  EXPECT_EQ(arguments_seen(R"(, "arguments": "not json")"), "{}");
  EXPECT_EQ(arguments_seen(R"(, "arguments": "[1]")"), "{}");
  EXPECT_EQ(arguments_seen(R"(, "arguments": "5")"), "{}");
  EXPECT_EQ(arguments_seen(R"(, "arguments": null)"), "{}");
  EXPECT_EQ(arguments_seen(""), "{}");
  EXPECT_EQ(arguments_seen(R"(, "arguments": "{\"a\": NaN}")"),
            "error: tool call arguments with NaN, Infinity or lone surrogates are not supported");
}

TEST(ChatTemplate, ToolCallsKeepFieldOrderAndDropEmptyLists) {
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "assistant", "content": "x", "zz": 1,
      "name": "n", "tool_calls": [{"type": "function", "index": 0, "id": "1",
      "function": {"name": "f", "arguments": "{}", "q": 2}}]},
      {"role": "assistant", "content": "y", "tool_calls": []},
      {"role": "tool", "tool_call_id": "1", "name": 5, "content": "r"}])"),
            R"([{"role": "assistant", "content": "x", "tool_calls": [{"id": "1", "function": )"
            R"({"arguments": {}, "name": "f", "q": 2}, "type": "function", "index": 0}], )"
            R"("name": "n"}, {"role": "assistant", "content": "y"}, )"
            R"({"role": "tool", "content": "r", "tool_call_id": "1"}]nullnull)");
}

TEST(ChatTemplate, ToolResultsOfTextsAreOneStringInEitherFormat) {
  const std::string texts = R"([{"role": "tool", "content": [{"type": "text", "text": "a"},
                                {"type": "text", "text": "b"}]}])";
  EXPECT_EQ(messages_seen(kPartsMirror, texts), R"([{"role": "tool", "content": "a\nb"}])");
  const std::string mixed = R"([{"role": "tool", "content": [{"type": "text", "text": "a"},
                                {"type": "image_url", "image_url": {"url": "u"}}]}])";
  EXPECT_EQ(messages_seen(kPartsMirror, mixed),
            R"([{"role": "tool", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}])");
}

TEST(ChatTemplate, ReasoningReachesTheTemplateUnderAllItsNames) {
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "assistant", "content": "4",
                                        "reasoning_content": "sum"}])"),
            R"([{"thinking": "sum", "role": "assistant", "content": "4", "reasoning": "sum", )"
            R"("reasoning_content": "sum"}]nullnull)");
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "user", "content": "4", "reasoning": "x"}])"),
            R"([{"role": "user", "content": "4"}]nullnull)");
}

TEST(ChatTemplate, ToolsArriveInTheEnginesShape) {
  EXPECT_EQ(text_of("{{ tools | tojson }}",
                    R"({"messages": [], "tools": [{"function": {"parameters": {"b": 1, "a": 2},
                        "name": "f", "extra": 1, "strict": null}, "type": "function", "x": 1},
                        {"type": "function", "function": {"name": "g", "strict": true,
                        "description": "d"}}]})"),
            R"([{"type": "function", "function": {"name": "f", "description": null, )"
            R"("parameters": {"b": 1, "a": 2}}}, {"type": "function", "function": )"
            R"({"name": "g", "description": "d", "parameters": null, "strict": true}}])");
  EXPECT_EQ(text_of("{{ tools is none }}", R"({"messages": []})"), "True");
  EXPECT_EQ(text_of("x", R"({"messages": [], "tools": [{"type": "function"}]})"),
            "error: tools: every tool needs a 'function' object");
}

TEST(ChatTemplate, MeaningfulKwargsReachTheTemplate) {
  const std::string source =
      "{{ enable_thinking is defined }} {{ level }} {{ eos_token }} {{ bos_token is defined }}";
  EXPECT_EQ(text_of(source, R"({"messages": [], "chat_template_kwargs": {"enable_thinking": null,
                                "level": 3, "eos_token": "</s>"}})"),
            "False 3 </s> False");
  EXPECT_EQ(text_of(source, R"({"messages": []})"), "False  <eos> False");
  EXPECT_EQ(text_of(source, R"({"messages": [], "chat_template_kwargs": {"tokenize": true}})"),
            "error: chat_template_kwargs: 'tokenize' cannot be set");
  EXPECT_EQ(text_of("{{ add_generation_prompt }}",
                    R"({"messages": [], "add_generation_prompt": false,
                        "chat_template_kwargs": {"add_generation_prompt": true}})"),
            "False");
}

TEST(ChatTemplate, AReasoningEffortAlsoChoosesThinking) {
  const std::string source = "{{ reasoning_effort }} {{ enable_thinking }}";
  EXPECT_EQ(text_of(source, R"({"messages": [], "reasoning_effort": "low"})"), "low True");
  EXPECT_EQ(text_of(source, R"({"messages": [], "reasoning_effort": "none"})"), "none False");
  EXPECT_EQ(text_of(source, R"({"messages": [], "reasoning_effort": "low",
                                "chat_template_kwargs": {"enable_thinking": false}})"),
            "low False");
}

TEST(ChatTemplate, DocumentsMustBeObjects) {
  EXPECT_EQ(
      text_of("{{ documents[0].title }}", R"({"messages": [], "documents": [{"title": "T"}]})"),
      "T");
  EXPECT_EQ(text_of("x", R"({"messages": [], "documents": ["T"]})"),
            "error: Documents should be a list of dicts with 'title' and 'text' keys!");
}

TEST(ChatTemplate, ContinuesTheFinalMessageWhereItEnds) {
  const std::string source =
      "{% for message in messages %}[{{ message.content | trim }}]\n{% endfor %}";
  const std::string body = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "{\"b\": "}], "continue_final_message": true,
      "add_generation_prompt": false})";
  EXPECT_EQ(text_of(source, body), "[a]\n[{\"b\":");
  EXPECT_EQ(text_of("{% for message in messages %}[{{ message.content }}]\n{% endfor %}", body),
            "[a]\n[{\"b\": ");
  EXPECT_TRUE(text_of("{{ messages[0].content }}", body).starts_with("error: continue_final"));
}

TEST(ChatTemplate, RefusesBothContinuingAndStartingAnAnswer) {
  const auto rendered =
      render(make(kMirror), R"({"messages": [], "continue_final_message": true})");
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.error().blame, Blame::Client);
  EXPECT_EQ(rendered.error().param, "continue_final_message");
}

TEST(ChatTemplate, DeveloperMessagesBecomeSystemMessagesForOlderTemplates) {
  const std::string messages = R"([{"role": "system", "content": "one"},
      {"role": "user", "content": "u"}, {"role": "developer", "content": "two", "tools": []}])";
  EXPECT_EQ(messages_seen(kMirror, messages), R"([{"role": "system", "content": "one\n\ntwo"}, )"
                                              R"({"role": "user", "content": "u"}]nullnull)");
  EXPECT_EQ(messages_seen("{{ messages[2].role == 'developer' }}", messages), "True");
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "developer", "content": "d"}])"),
            R"([{"role": "system", "content": "d"}]nullnull)");
}

TEST(ChatTemplate, DropsTheBillingLineOfSystemTexts) {
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "system",
      "content": "x-anthropic-billing-header: a\nrest"}])"),
            R"([{"role": "system", "content": "rest"}]nullnull)");
  EXPECT_EQ(messages_seen(kMirror, R"([{"role": "user",
      "content": "x-anthropic-billing-header: a\nrest"}])"),
            R"([{"role": "user", "content": "x-anthropic-billing-header: a\nrest"}]nullnull)");
}

TEST(ChatTemplate, MalformedMessagesAreTheClientsFault) {
  for (const char* messages :
       {R"([5])", R"([{"content": "x"}])", R"([{"role": 5}])",
        R"([{"role": "user", "content": 5}])", R"([{"role": "user", "content": [5]}])",
        R"([{"role": "user", "content": [{"type": "hologram"}]}])",
        R"([{"role": "user", "content": [{"text": "no type"}]}])",
        R"([{"role": "user", "content": [{"type": "text", "text": "t", "uuid": "u"}]}])",
        R"([{"role": "assistant", "tool_calls": [5]}])",
        R"([{"role": "assistant", "tool_calls": [{"type": "custom"}]}])"}) {
    const auto rendered = render(make(kMirror), std::string(R"({"messages": )") + messages + "}");
    ASSERT_FALSE(rendered.ok()) << messages;
    EXPECT_EQ(rendered.error().code, ErrorCode::InvalidArgument) << messages;
    EXPECT_EQ(rendered.error().blame, Blame::Client) << messages;
  }
}

}  // namespace
}  // namespace sightline::chat
