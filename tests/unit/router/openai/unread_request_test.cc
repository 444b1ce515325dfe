// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/openai/unread_request.h"

#include <array>

#include <gtest/gtest.h>

#include "router/openai/edits.h"

namespace sightline::openai {
namespace {

constexpr std::array kFixed = {FixedMember{"mode", R"("new")"}, FixedMember{"rank", "null"}};
const UnreadRules kRules{.fixed = kFixed, .media_max = 4};

UnreadRequest read(std::string body, std::string_view type = "application/json") {
  auto request = read_unread(std::move(body), type, kRules);
  EXPECT_TRUE(request.ok()) << request.error().message;
  return request.ok() ? std::move(request).value() : UnreadRequest{};
}

std::vector<std::string> urls_of(std::string body) {
  const UnreadRequest request = read(std::move(body));
  std::vector<std::string> urls;
  for (const MediaPart& part : request.media) urls.emplace_back(part.url->string().value());
  return urls;
}

std::string fixed(std::string body) {
  const UnreadRequest request = read(std::move(body));
  EditedBody edited(request.text());
  for (const auto& fix : request.fixes) {
    edited.replace(fix.old.begin_offset(), fix.old.end_offset(), std::string(fix.value));
  }
  for (const MediaPart& part : request.media) set_url(edited, part, "URL");
  std::string text;
  for (const std::string_view piece : edited.pieces()) text += piece;
  return text;
}

std::string param_of(std::string body, std::string_view type = "application/json") {
  const auto request = read_unread(std::move(body), type, kRules);
  EXPECT_FALSE(request.ok());
  return request.ok() ? "" : request.error().param;
}

TEST(UnreadRequest, UrlsAreFoundInEveryFormThatEnginesTake) {
  using Urls = std::vector<std::string>;
  EXPECT_EQ(urls_of(R"({"input":[{"content":[{"type":"input_image","image_url":"u"}]}]})"),
            Urls{"u"});
  EXPECT_EQ(urls_of(R"({"messages":[{"content":[{"type":"image","source":{"type":"url","url":"u"}},
      {"type":"document","source":{"type":"url","url":"v"}}]}]})"),
            (Urls{"u", "v"}));
  EXPECT_EQ(urls_of(R"({"messages":[{"content":[{"image_url":{"url":"a"}},
      {"type":"x","video_url":{"detail":"low","url":"b"}},{"type":"audio_url","url":"c"}]}]})"),
            (Urls{"a", "b", "c"}));
  EXPECT_EQ(urls_of(R"({"input":[{"text":"t","image":"http://u"},{"video":["http://v/1"]}]})"),
            (Urls{"http://u", "http://v/1"}));
  EXPECT_EQ(urls_of(R"({"a":{"b":[[{"file_url":"u"}]]}})"), Urls{"u"});
  EXPECT_EQ(urls_of(R"([{"image_url":"u"}])"), Urls{"u"});
  EXPECT_EQ(urls_of(R"({"image_url":"u","image_url":{"url":"v","\u0075rl":"w"}})"),
            (Urls{"u", "v", "w"}));
}

TEST(UnreadRequest, TextIsNeverAUrl) {
  for (const char* body :
       {R"({"input":"http://10.0.0.1/"})", R"({"input":["http://10.0.0.1/"]})",
        R"({"messages":[{"content":[{"type":"text","text":"http://10.0.0.1/"}]}]})",
        R"({"input":[{"annotations":[{"type":"url_citation","url":"http://10.0.0.1/"}]}]})",
        R"({"input":[{"action":{"type":"open_page","url":"http://10.0.0.1/"}}]})",
        R"({"tools":[{"type":"function","parameters":{"examples":[{"image_url":"u"}]}}]})",
        R"({"metadata":{"image":"http://10.0.0.1/"}})", R"({"image":"aGVsbG8/+=="})",
        R"({"image_url":null,"image":""})"}) {
    EXPECT_EQ(urls_of(body), std::vector<std::string>{}) << body;
  }
}

TEST(UnreadRequest, AnItemSaysWhatAndWhereItIs) {
  const UnreadRequest request =
      read(R"({"input":["t",{"content":[{"type":"video_url","video_url":{"url":"u"}}]}]})");
  ASSERT_EQ(request.media.size(), 1U);
  EXPECT_EQ(request.media[0].modality, Modality::Video);
  EXPECT_EQ(request.media[0].path, "input[1].content[0].video_url.url");
}

TEST(UnreadRequest, NoMoreItemsThanAllowedAreTaken) {
  EXPECT_EQ(urls_of(R"({"image":["a.","a.","a.","a."]})").size(), 4U);
  EXPECT_EQ(param_of(R"({"image":["a.","a.","a.","a.","a."]})"), "image[4]");
}

TEST(UnreadRequest, TransferParametersAreRefusedWhereverTheyStand) {
  for (const std::string name : {"kv_transfer_params", "ec_transfer_params", "bootstrap_host",
                                 "bootstrap_port", "bootstrap_room", "disaggregated_params"}) {
    EXPECT_EQ(param_of(R"({")" + name + R"(":{}})"), name);
    EXPECT_EQ(param_of(R"({"a":[{"b":{")" + name + R"(":1}}]})"), name);
    EXPECT_EQ(param_of("--x\r\nname=" + name, "Multipart/Form-Data; boundary=x"), name);
    read(R"({")" + name + R"(":null})");
    const auto chat = json::Document::parse(R"({"vllm_xargs":{")" + name + R"(":[]}})");
    EXPECT_FALSE(check_no_transfer(chat->root()).ok()) << name;
  }
  EXPECT_EQ(param_of(R"({"kv_transfer_param\u0073":{}})"), "kv_transfer_params");
}

TEST(UnreadRequest, ServersOfToolsAreRefused) {
  EXPECT_EQ(param_of(R"({"tools":[{"type":"mcp","server_url":"http://u"}]})"), "tools");
  EXPECT_EQ(param_of(R"({"mcp_servers":[{"type":"url","url":"http://u"}]})"), "mcp_servers");
  read(R"({"tools":[{"type":"mcp","server_label":"l","server_url":null}],"mcp_servers":[]})");
}

TEST(UnreadRequest, ReplacesFixedMembersAndMediaIdentifiersAtAnyDepth) {
  EXPECT_EQ(fixed(R"({"x":{"mode":"full","mode":{"image_url":"u"}},"rank":3})"),
            R"({"x":{"mode":"new","mode":"new"},"rank":null})");
  EXPECT_EQ(
      fixed(R"({"c":[{"image_url":"u","uuid":{"url":"http://v"}},{"type":"audio","uuid":"w"}]})"),
      R"({"c":[{"image_url":"URL","uuid":null},{"type":"audio","uuid":null}]})");
  EXPECT_EQ(fixed(R"({"c":[{"type":"text","uuid":"w"}],"uuid":1})"),
            R"({"c":[{"type":"text","uuid":"w"}],"uuid":1})");
}

TEST(UnreadRequest, MembersToBeReplacedAreBounded) {
  std::string body = R"({"mode":1)";
  for (int i = 1; i < 16'384; ++i) body += R"(,"mode":1)";
  EXPECT_EQ(read(body + "}").fixes.size(), 16'384U);
  EXPECT_EQ(param_of(body + R"(,"rank":1})"), "rank");
}

TEST(UnreadRequest, AFormAndAnAbsentBodyAreLeftAlone) {
  const UnreadRequest form = read("--x\r\n\xff{", "multipart/form-data; boundary=x");
  EXPECT_EQ(form.text(), "--x\r\n\xff{");
  EXPECT_FALSE(form.document);
  EXPECT_EQ(read("", "").text(), "");
  EXPECT_EQ(read("\xEF\xBB\xBF{}", "").text(), "{}");
  EXPECT_FALSE(read_unread("no JSON", "text/plain", kRules).ok());
}

}  // namespace
}  // namespace sightline::openai
