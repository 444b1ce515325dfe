// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/edits.h"

#include <gtest/gtest.h>

#include "tests/support/edited.h"

namespace sightline::openai {
namespace {

TEST(Edits, UneditedBodyIsOnePieceOfTheSameBytes) {
  const std::string text = R"({ "a" : 1 })";
  const EditedBody body(text);
  ASSERT_EQ(body.pieces().size(), 1U);
  EXPECT_EQ(body.pieces()[0].data(), text.data());
}

TEST(Edits, AddsTheUuidBesideThePayloadOnly) {
  const ApiRequest request = parsed_chat(
      R"({"messages":[{"content":[{"type":"image_url", "image_url":{"url":"x"} }]}], "z":1})");
  EditedBody body(request.document.text());
  set_uuid(body, request.chat()->media[0], "abc");
  EXPECT_EQ(
      joined(body),
      R"({"messages":[{"content":[{"type":"image_url", "image_url":{"url":"x"} ,"uuid":"abc"}]}], "z":1})");
}

TEST(Edits, EveryUuidOfTheClientIsReplaced) {
  const ApiRequest request = parsed_chat(
      R"({"messages":[{"content":[{"uuid":7,"type":"image_url","image_url":{"url":"x"},"uuid":"y"}]}]})");
  EditedBody body(request.document.text());
  set_uuid(body, request.chat()->media[0], "abc");
  EXPECT_EQ(
      joined(body),
      R"({"messages":[{"content":[{"uuid":"abc","type":"image_url","image_url":{"url":"x"},"uuid":"abc"}]}]})");
}

TEST(Edits, RemovesAUuidThatBytesDoNotGive) {
  const ApiRequest request = parsed_chat(
      R"({"messages":[{"content":[{"type":"video_url","video_url":{"url":"v"},"uuid":"mine"}]}]})");
  EditedBody body(request.document.text());
  clear_uuid(body, request.chat()->media[0]);
  EXPECT_EQ(
      joined(body),
      R"({"messages":[{"content":[{"type":"video_url","video_url":{"url":"v"},"uuid":null}]}]})");
}

TEST(Edits, UrlAndUuidOfSeveralPartsAreEditedTogether) {
  const ApiRequest request = parsed_chat(
      R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"http://a"}},{"type":"image_url","image_url":"http://b"}]}]})");
  EditedBody body(request.document.text());
  set_url(body, request.chat()->media[1], "data:2");
  set_uuid(body, request.chat()->media[1], "u2");
  set_uuid(body, request.chat()->media[0], "u1");
  set_url(body, request.chat()->media[0], "data:1");
  EXPECT_EQ(
      joined(body),
      R"({"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:1"},"uuid":"u1"},{"type":"image_url","image_url":"data:2","uuid":"u2"}]}]})");
}

TEST(Edits, RequestsUsageForAnyFormOfOptions) {
  struct Case {
    const char* given;
    const char* want;
  };
  const Case cases[] = {
      {R"({"messages":[]})", R"({"messages":[],"stream_options":{"include_usage":true}})"},
      {R"({"messages":[],"stream_options":null})",
       R"({"messages":[],"stream_options":{"include_usage":true}})"},
      {R"({"messages":[],"stream_options":{}})",
       R"({"messages":[],"stream_options":{"include_usage":true}})"},
      {R"({"messages":[],"stream_options":{"x":1}})",
       R"({"messages":[],"stream_options":{"x":1,"include_usage":true}})"},
      {R"({"messages":[],"stream_options":{"include_usage":false}})",
       R"({"messages":[],"stream_options":{"include_usage":true}})"},
      {R"({"messages":[],"stream_options":{"continuous_usage_stats":true}})",
       R"({"messages":[],"stream_options":{"continuous_usage_stats":false,"include_usage":true}})"},
      {R"({"stream_options":{"continuous_usage_stats":1,"include_usage":false,)"
       R"("continuous_usage_stats":true},"messages":[]})",
       R"({"stream_options":{"continuous_usage_stats":false,"include_usage":true,)"
       R"("continuous_usage_stats":false},"messages":[]})"},
  };
  for (const Case& c : cases) {
    const ApiRequest request = parsed_chat(c.given);
    EditedBody body(request.document.text());
    ask_for_usage(body, request);
    EXPECT_EQ(joined(body), c.want);
  }
}

}  // namespace
}  // namespace sightline::openai
