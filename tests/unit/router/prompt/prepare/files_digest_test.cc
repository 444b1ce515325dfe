// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "router/prompt/prepare/model.h"
#include "tests/support/paths.h"

namespace sightline::prepare {
namespace {

namespace fs = std::filesystem;

std::string digest_of(const fs::path& directory) {
  const auto model = load_model(directory.string());
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? (*model)->files_digest : "";
}

// A copy of a model that a test may change.
class ModelCopy {
 public:
  explicit ModelCopy(const std::string& name)
      : path_(fs::path(testing::TempDir()) / ("sightline-digest-" + name)) {
    fs::remove_all(path_);
    fs::copy(test::in_build("models/tiny-qwen2-vl"), path_, fs::copy_options::recursive);
  }
  ~ModelCopy() { fs::remove_all(path_); }
  ModelCopy(const ModelCopy&) = delete;
  ModelCopy& operator=(const ModelCopy&) = delete;

  void append(const std::string& file, std::string_view text) const {
    std::ofstream(path_ / file, std::ios::binary | std::ios::app) << text;
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(FilesDigest, DependsOnContentsAndNotOnTheirPlace) {
  const ModelCopy copy("place");
  const std::string digest = digest_of(copy.path());
  EXPECT_EQ(digest.size(), 64U);
  EXPECT_EQ(digest, digest_of(test::in_build("models/tiny-qwen2-vl")));
}

TEST(FilesDigest, ChangesWithEveryFileThatIsRead) {
  const std::string before = digest_of(test::in_build("models/tiny-qwen2-vl"));
  for (const std::string_view file :
       {model::kConfigFile, model::kTokenizerFile, model::kTokenizerConfigFile,
        model::kTemplateFile, model::kPreprocessorFile}) {
    const ModelCopy copy("byte");
    ASSERT_TRUE(fs::exists(copy.path() / file)) << file;
    copy.append(std::string(file), "\n");
    EXPECT_NE(digest_of(copy.path()), before) << file;
  }
}

TEST(FilesDigest, ChangesWithAnAdditionalFile) {
  const ModelCopy copy("more");
  const std::string before = digest_of(copy.path());
  ASSERT_FALSE(fs::exists(copy.path() / model::kTemplateJsonFile));
  copy.append(std::string(model::kTemplateJsonFile), R"({"chat_template": ""})");
  EXPECT_NE(digest_of(copy.path()), before);
}

TEST(FilesDigest, IgnoresTheWeights) {
  const ModelCopy copy("weights");
  const std::string before = digest_of(copy.path());
  copy.append("model.safetensors", "weights");
  EXPECT_EQ(digest_of(copy.path()), before);
}

}  // namespace
}  // namespace sightline::prepare
