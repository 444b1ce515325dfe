// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/model/model_directory.h"

#include <gtest/gtest.h>

#include "tests/golden/images/counts.h"

namespace sightline::model {
namespace {

const std::string kVisionConfig =
    R"({"model_type":"qwen2_vl","image_token_id":7,"video_token_id":8,"vision_config":{}})";

ModelFiles vision_files(std::string preprocessor) {
  ModelFiles files;
  files.config = kVisionConfig;
  files.preprocessor = std::move(preprocessor);
  return files;
}

ModelProfile parsed(const ModelFiles& files) {
  auto profile = parse_model(files);
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error().message);
  return profile.ok() ? *profile : ModelProfile{};
}

std::string refusal(const ModelFiles& files) {
  const auto profile = parse_model(files);
  return profile.ok() ? "accepted" : profile.error().message;
}

TEST(ModelDirectory, ReadsTheDirectoriesOfTheTests) {
  const ModelProfile qwen2 = golden::profile_of("qwen2-vl");
  EXPECT_EQ(qwen2.family, ModelFamily::Qwen2Vl);
  EXPECT_EQ(qwen2.placeholders.image, 151655U);
  EXPECT_EQ(qwen2.placeholders.video, 151656U);
  EXPECT_EQ(qwen2.placeholders.vision_start, 151652U);
  EXPECT_EQ(qwen2.placeholders.vision_end, 151653U);
  EXPECT_EQ(qwen2.image_rule.pixels_max, 12'845'056U);
  EXPECT_EQ(qwen2.tokens_max, 32768U);
  EXPECT_FALSE(qwen2.chat_template.empty());
  EXPECT_EQ(qwen2.chat_template, qwen2.chat_template_with_tools);
  EXPECT_EQ(golden::profile_of("qwen2_5-vl").family, ModelFamily::Qwen2_5Vl);
  const ModelProfile qwen3 = golden::profile_of("qwen3-vl");
  EXPECT_EQ(qwen3.family, ModelFamily::Qwen3Vl);
  EXPECT_EQ(qwen3.image_rule.patch, 16U);
  EXPECT_EQ(qwen3.image_rule.pixels_min, 65'536U);
  EXPECT_TRUE(qwen3.tokens_max.has_value());
  EXPECT_EQ(golden::profile_of("tiny-qwen2-vl").image_rule.pixels_max, 1'003'520U);
}

TEST(ModelDirectory, PixelLimitsComeInSeveralForms) {
  const auto limits = [](std::string preprocessor) {
    const ImageRule rule = parsed(vision_files(std::move(preprocessor))).image_rule;
    return std::pair{rule.pixels_min, rule.pixels_max};
  };
  using Limits = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(limits("{}"), (Limits{3136, 1'003'520}));
  EXPECT_EQ(limits(R"({"min_pixels":100,"max_pixels":2000})"), (Limits{100, 2000}));
  EXPECT_EQ(limits(R"({"size":{"shortest_edge":100,"longest_edge":2000}})"), (Limits{100, 2000}));
  EXPECT_EQ(limits(R"({"size":{"min_pixels":100,"max_pixels":2000}})"), (Limits{100, 2000}));
  EXPECT_EQ(limits(R"({"max_pixels":5000,"size":{"shortest_edge":100,"longest_edge":2000}})"),
            (Limits{100, 5000}));
  EXPECT_EQ(limits(R"({"max_pixels":null,"size":{"shortest_edge":100,"longest_edge":2000}})"),
            (Limits{100, 2000}));
}

// One class of transformers serves all families, and has the same defaults for each.
TEST(ModelDirectory, MissingSettingsGetTheDefaultsOfTheClass) {
  for (const std::string type : {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"}) {
    ModelFiles files = vision_files("{}");
    files.config = R"({"model_type":")" + type + R"(","image_token_id":7})";
    const ImageRule rule = parsed(files).image_rule;
    EXPECT_EQ(rule.patch, 14U) << type;
    EXPECT_EQ(rule.pixels_min, 3136U) << type;
    EXPECT_EQ(rule.pixels_max, 1'003'520U) << type;
  }
}

TEST(ModelDirectory, NestedImageProcessorHasPriority) {
  ModelFiles files = vision_files(R"({"max_pixels":4000})");
  files.processor = R"({"processor_class":"P"})";
  EXPECT_EQ(parsed(files).image_rule.pixels_max, 4000U);
  files.processor = R"({"image_processor":{"max_pixels":5000,"patch_size":16}})";
  EXPECT_EQ(parsed(files).image_rule.pixels_max, 5000U);
  EXPECT_EQ(parsed(files).image_rule.patch, 16U);
}

TEST(ModelDirectory, ErrorsNameTheFileAndTheField) {
  struct Case {
    ModelFiles files;
    std::string want_file;
    std::string want_text;
  };
  ModelFiles no_preprocessor;
  no_preprocessor.config = kVisionConfig;
  ModelFiles bad_tokens = vision_files("{}");
  bad_tokens.tokenizer_config = R"({"bos_token":5})";
  ModelFiles bad_template = vision_files("{}");
  bad_template.template_json = R"({"chat_template":["x"]})";
  const std::vector<Case> cases{
      {{.config = "{"}, "config.json", ""},
      {{.config = "[]"}, "config.json", "object"},
      {{.config = "{}"}, "config.json", "model_type"},
      {{.config = R"({"model_type":"qwen3_vl"})"}, "config.json", "image_token_id"},
      {{.config = R"({"model_type":"qwen2_vl","image_token_id":-1})"},
       "config.json",
       "image_token_id"},
      {{.config = R"({"model_type":"a","max_position_embeddings":"x"})"},
       "config.json",
       "max_position_embeddings"},
      {no_preprocessor, "preprocessor_config.json", "missing"},
      {vision_files(R"({"patch_size":0})"), "preprocessor_config.json", "patch_size"},
      {vision_files(R"({"max_pixels":1.5})"), "preprocessor_config.json", "max_pixels"},
      {vision_files(R"({"size":5})"), "preprocessor_config.json", "size"},
      {vision_files(R"({"size":{"height":5}})"), "preprocessor_config.json", "shortest_edge"},
      {vision_files(R"({"min_pixels":9,"max_pixels":8})"), "preprocessor_config.json", "exceeds"},
      {bad_tokens, "tokenizer_config.json", "bos_token"},
      {bad_template, "chat_template.json", "chat_template"}};
  for (const Case& c : cases) {
    const std::string message = refusal(c.files);
    EXPECT_TRUE(message.starts_with(c.want_file + ": ")) << message;
    EXPECT_NE(message.find(c.want_text), std::string::npos) << message;
  }
}

TEST(ModelDirectory, ModelsWithoutMediaAreTextAndOthersAreUnknown) {
  const auto family = [](std::string config) {
    return parsed(ModelFiles{.config = std::move(config)}).family;
  };
  EXPECT_EQ(family(R"({"model_type":"qwen3"})"), ModelFamily::TextOnly);
  EXPECT_EQ(family(R"({"model_type":"llava","vision_config":{}})"), ModelFamily::Unknown);
  EXPECT_EQ(family(R"({"model_type":"gemma3","image_token_index":5})"), ModelFamily::Unknown);
  EXPECT_EQ(family(R"({"model_type":"qwen2_audio","audio_config":{}})"), ModelFamily::Unknown);
}

TEST(ModelDirectory, TheContextLengthFollowsNestingAndRopeScaling) {
  const auto tokens_max = [](std::string fields) {
    return parsed(ModelFiles{.config = R"({"model_type":"a")" + fields + "}"}).tokens_max;
  };
  EXPECT_EQ(tokens_max(""), std::nullopt);
  EXPECT_EQ(tokens_max(R"(,"max_position_embeddings":4096)"), 4096U);
  EXPECT_EQ(tokens_max(R"(,"text_config":{"max_position_embeddings":512})"), 512U);
  EXPECT_EQ(tokens_max(R"(,"max_position_embeddings":4096,"rope_scaling":{"type":"mrope"})"),
            4096U);
  EXPECT_EQ(tokens_max(R"(,"max_position_embeddings":40960,"rope_scaling":{"rope_type":"yarn",)"
                       R"("factor":4.0,"original_max_position_embeddings":32768})"),
            131072U);
  EXPECT_EQ(tokens_max(R"(,"max_position_embeddings":131072,"rope_scaling":{"rope_type":"llama3",)"
                       R"("factor":8.0,"original_max_position_embeddings":8192})"),
            131072U);
}

TEST(ModelDirectory, SpecialTokensAreTextOrObjects) {
  ModelFiles files{.config = R"({"model_type":"a"})"};
  files.tokenizer_config =
      R"({"bos_token":null,"eos_token":{"content":"<|im_end|>","lstrip":false},"pad_token":"<pad>"})";
  const ModelProfile profile = parsed(files);
  ASSERT_EQ(profile.special_tokens.size(), 2U);
  EXPECT_EQ(profile.special_tokens[0].name, "eos_token");
  EXPECT_EQ(profile.special_tokens[0].text, "<|im_end|>");
  EXPECT_EQ(profile.special_tokens[1].text, "<pad>");
}

TEST(ModelDirectory, TheChatTemplateIsChosenAsTheEngineDoes) {
  ModelFiles files{.config = R"({"model_type":"a"})"};
  EXPECT_EQ(parsed(files).chat_template, "");
  files.tokenizer_config = R"({"chat_template":[{"name":"default","template":"D"},)"
                           R"({"name":"tool_use","template":"T"}]})";
  EXPECT_EQ(parsed(files).chat_template, "D");
  EXPECT_EQ(parsed(files).chat_template_with_tools, "T");
  files.template_json = R"({"chat_template":"J"})";
  EXPECT_EQ(parsed(files).chat_template, "J");
  EXPECT_EQ(parsed(files).chat_template_with_tools, "T");
  files.tokenizer_config = R"({"chat_template":"D"})";
  EXPECT_EQ(parsed(files).chat_template, "J");
  EXPECT_EQ(parsed(files).chat_template_with_tools, "D");
  files.template_jinja = "F";
  EXPECT_EQ(parsed(files).chat_template, "F");
  EXPECT_EQ(parsed(files).chat_template_with_tools, "F");
}

}  // namespace
}  // namespace sightline::model
