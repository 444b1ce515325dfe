// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/message_content.h"

#include <gtest/gtest.h>

namespace sightline::openai {
namespace {

ApiRequest parsed(Endpoint endpoint, std::string body) {
  auto request = parse_request(endpoint, std::move(body), {});
  EXPECT_TRUE(request.ok()) << request.error().message;
  return std::move(request).value();
}

Error refused(Endpoint endpoint, std::string body, RequestLimits limits = {}) {
  const auto request = parse_request(endpoint, std::move(body), limits);
  EXPECT_FALSE(request.ok());
  return request.ok() ? Error{} : request.error();
}

TEST(Content, MediaPartsAreFoundInOrderWithTheirModality) {
  const auto request = parsed(Endpoint::Chat, R"({"messages":[
    {"role":"system","content":"no parts"},
    {"role":"user","content":[{"type":"text","text":"a"},
      {"type":"image_url","image_url":{"url":"data:x"}},
      {"type":"image_url","image_url":"http://h/i"},
      {"type":"video_url","video_url":{"url":"http://h/v"}}]},
    {"role":"assistant","content":null},
    {"role":"user","content":[{"type":"input_image","image_url":"u"},{"image_url":{"url":"w"}},
      {"type":"image_embeds","image_embeds":"e"}]}]})");
  const auto& media = request.chat()->media;
  ASSERT_EQ(media.size(), 6U);
  EXPECT_EQ(media[0].url->string(), "data:x");
  EXPECT_EQ(media[0].path, "messages[1].content[1]");
  EXPECT_EQ(media[1].url->string(), "http://h/i");
  EXPECT_EQ(media[2].modality, Modality::Video);
  EXPECT_EQ(media[3].url->string(), "u");
  EXPECT_EQ(media[4].url->string(), "w");
  EXPECT_EQ(media[5].modality, Modality::Other);
}

TEST(Content, AnImageWithoutBytesIsRefusedEvenWithAUuid) {
  for (const char* part :
       {R"({"type":"image_url","image_url":null,"uuid":"u"})",
        R"({"type":"image_url","image_url":{"url":null},"uuid":"u"})",
        R"({"type":"image_url","image_url":{"url":""},"uuid":"u"})",
        R"({"type":"image_url","uuid":"u"})", R"({"type":"image_url","image_url":{"url":5}})"}) {
    const Error error = refused(
        Endpoint::Chat, R"({"messages":[{"role":"user","content":[)" + std::string(part) + "]}]}");
    EXPECT_EQ(error.code, ErrorCode::InvalidArgument) << part;
    EXPECT_EQ(error.param, "messages[0].content[0]") << part;
  }
}

// vLLM 0.32 ignores the type of a part with a uuid.
TEST(Content, PayloadDecidesAPartWithAUuid) {
  for (const char* part :
       {R"({"type":"text","text":"t","image_url":{"url":"data:x"},"uuid":"u"})",
        R"({"type":"video_url","video_url":{"url":"v"},"image_url":"data:x","uuid":5})",
        R"({"type":null,"image_url":{"url":"data:x"},"uuid":"u"})",
        R"({"type":null,"image_url":{"url":"data:x"}})",
        R"({"type":7,"image_pil":"p","image_url":"data:x","uuid":"u"})"}) {
    const auto request = parsed(
        Endpoint::Chat, R"({"messages":[{"role":"user","content":[)" + std::string(part) + "]}]}");
    const auto& media = request.chat()->media;
    ASSERT_EQ(media.size(), 1U) << part;
    EXPECT_EQ(media[0].modality, Modality::Image) << part;
    EXPECT_EQ(media[0].url->string(), "data:x") << part;
  }
}

TEST(Content, ListsEachPartWithAUuidForRemoval) {
  for (const char* part :
       {R"({"type":"text","text":"t","uuid":"u"})", R"({"type":"video_embeds","uuid":"u"})",
        R"({"type":"new","uuid":{}})", R"({"video_embeds":"v","uuid":"u"})",
        R"({"tool_reference":1,"uuid":"u"})",
        R"({"type":"text","text":"t","audio_embeds":"a",)"
        R"("uuid":"u"})"}) {
    const auto request = parsed(
        Endpoint::Chat, R"({"messages":[{"role":"user","content":[)" + std::string(part) + "]}]}");
    ASSERT_EQ(request.chat()->media.size(), 1U) << part;
    EXPECT_FALSE(request.chat()->media[0].url.has_value()) << part;
  }
  const auto plain = parsed(
      Endpoint::Chat,
      R"({"messages":[{"content":[{"type":"text","text":"t","uuid":null},{"type":"new"}]}]})");
  EXPECT_TRUE(plain.chat()->media.empty());
}

TEST(Content, ReadsUrlsOfVideoAndAudioLikeImages) {
  const auto request = parsed(Endpoint::Chat, R"({"messages":[{"content":[
    {"type":"video_url","video_url":{"url":"http://v"}},{"type":"audio_url","audio_url":"http://a"},
    {"type":"text","text":"t","audio_url":"http://b","uuid":"u"},
    {"type":"video","video":"http://c"},{"type":"image","image":"http://d"},
    {"type":"image","image":"aGVsbG8="},{"type":"video_url","video_url":null},
    {"type":"input_audio","input_audio":{"data":"aGVsbG8=","format":"wav"}}]}]})");
  const auto& media = request.chat()->media;
  ASSERT_EQ(media.size(), 8U);
  const char* const wanted[] = {"http://v", "http://a", "http://b", "http://c", "http://d"};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(media[i].url->string(), wanted[i]);
  for (std::size_t i = 5; i < 8; ++i) EXPECT_FALSE(media[i].url.has_value()) << i;
}

// Engines read the last of two members with the same name. Another reader might read the first.
TEST(Content, TypeDecidesAPartWithARevokedUuid) {
  const auto request = parsed(Endpoint::Chat, R"({"messages":[{"content":[
    {"type":"text","text":"t","image_url":"x","uuid":"u","uuid":null},
    {"type":"video_url","video_url":"v","image_url":"x","uuid":"u","uuid":null}]}]})");
  const auto& media = request.chat()->media;
  ASSERT_EQ(media.size(), 2U);
  EXPECT_EQ(media[0].modality, Modality::Other);
  EXPECT_EQ(media[1].modality, Modality::Video);
}

TEST(Content, TheNumberOfMediaItemsIsBounded) {
  const std::string image = R"({"type":"image_url","image_url":{"url":"x"}})";
  const std::string body =
      R"({"messages":[{"content":[)" + image + "," + image + "," + image + "]}]}";
  EXPECT_TRUE(parse_request(Endpoint::Chat, body, {.images_max = 3}).ok());
  EXPECT_EQ(refused(Endpoint::Chat, body, {.images_max = 2}).param, "messages");
}

}  // namespace
}  // namespace sightline::openai
