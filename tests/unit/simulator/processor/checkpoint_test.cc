// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/checkpoint.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace sightline::processor {
namespace {

const std::string kVision =
    R"({"model_type":"qwen2_vl","image_token_id":7,"video_token_id":8,"vision_config":{}})";

// Each test has its own model directory.
class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() : directory_(testing::TempDir() + "sl_checkpoint") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~CheckpointTest() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ + "/" + name) << content;
  }
  [[nodiscard]] Result<Checkpoint> read() const { return read_checkpoint(directory_); }
  [[nodiscard]] std::string refusal() const {
    const auto checkpoint = read();
    return checkpoint.ok() ? "accepted" : checkpoint.error().message;
  }

 private:
  std::string directory_;
};

TEST_F(CheckpointTest, ReadsImageSettingsFromTheFilesOfTransformers) {
  write("config.json", kVision);
  write("preprocessor_config.json", "{}");
  EXPECT_EQ(read()->images->longest_edge, 1'003'520U);
  write("preprocessor_config.json", R"({"size":{"shortest_edge":5,"longest_edge":2000}})");
  EXPECT_EQ(read()->images->shortest_edge, 5U);
  write("preprocessor_config.json",
        R"({"size":{"shortest_edge":5,"longest_edge":2000},"min_pixels":6,"patch_size":16})");
  EXPECT_EQ(read()->images->shortest_edge, 6U);
  EXPECT_EQ(read()->images->longest_edge, 2000U);
  EXPECT_EQ(read()->images->patch_size, 16U);
  write("processor_config.json", R"({"image_processor":{"max_pixels":77}})");
  EXPECT_EQ(read()->images->longest_edge, 77U);
  EXPECT_EQ(read()->images->patch_size, 14U);
}

TEST_F(CheckpointTest, RefusalNamesTheFile) {
  EXPECT_NE(refusal().find("has no config.json"), std::string::npos);
  write("config.json", "[]");
  EXPECT_TRUE(refusal().starts_with("config.json: ")) << refusal();
  write("config.json", kVision);
  EXPECT_TRUE(refusal().starts_with("preprocessor_config.json: ")) << refusal();
  for (const char* content :
       {"{", R"({"patch_size":0})", R"({"max_pixels":1.5})", R"({"size":{"shortest_edge":5}})",
        R"({"size":{"min_pixels":5,"max_pixels":6}})"}) {
    write("preprocessor_config.json", content);
    EXPECT_TRUE(refusal().starts_with("preprocessor_config.json: ")) << content;
  }
}

TEST_F(CheckpointTest, DistinguishesTextModelsFromUnknownMediaModels) {
  write("config.json", R"({"model_type":"qwen3"})");
  EXPECT_FALSE(read()->takes_media);
  write("config.json", R"({"model_type":"llava","vision_config":{}})");
  EXPECT_TRUE(read()->takes_media);
  EXPECT_FALSE(read()->images);
}

TEST_F(CheckpointTest, ReadsLengthAndTemplateOfTheTokenizer) {
  write("config.json",
        R"({"model_type":"a","max_position_embeddings":40960,"rope_scaling":{"rope_type":"yarn",)"
        R"("factor":4.0,"original_max_position_embeddings":32768}})");
  EXPECT_EQ(read()->tokens_max, 131'072U);
  write("tokenizer_config.json",
        R"({"bos_token":null,"eos_token":{"content":"<e>"},"pad_token":"<p>","chat_template":)"
        R"([{"name":"tool_use","template":"T"},{"name":"default","template":"D"}]})");
  EXPECT_EQ(read()->chat_template, "D");
  ASSERT_EQ(read()->special_tokens.size(), 2U);
  EXPECT_EQ(read()->special_tokens[0].second, "<e>");
  write("chat_template.json", R"({"chat_template":"J"})");
  EXPECT_EQ(read()->chat_template, "J");
  write("chat_template.jinja", "F");
  EXPECT_EQ(read()->chat_template, "F");
}

}  // namespace
}  // namespace sightline::processor
