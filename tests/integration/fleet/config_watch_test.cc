// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/config_watch.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/eventually.h"

namespace sightline::fleet {
namespace {

namespace fs = std::filesystem;
using test::eventually;

class ConfigWatchTest : public testing::Test {
 protected:
  ConfigWatchTest() {
    std::string pattern = fs::temp_directory_path() / "config-watch-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~ConfigWatchTest() override {
    watch_.reset();
    fs::remove_all(directory_);
  }

  // Writes in place. The watch may report the empty file of the moment between.
  static void write(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  static void replace(const fs::path& path, const std::string& content) {
    const fs::path aside = path.string() + ".tmp";
    write(aside, content);
    fs::rename(aside, path);
  }

  void watch(const fs::path& file) {
    auto watch = ConfigWatch::create({.file = file, .debounce = std::chrono::milliseconds(20)},
                                     [this](const Result<std::string>& content) {
                                       const std::lock_guard lock(mutex_);
                                       seen_.push_back(content.ok() ? *content : "gone");
                                     });
    ASSERT_TRUE(watch.ok()) << watch.error().message;
    watch_ = std::move(*watch);
  }

  [[nodiscard]] std::vector<std::string> seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  [[nodiscard]] bool comes_to(const std::vector<std::string>& want) const {
    return eventually([&] { return seen() == want; });
  }

  fs::path directory_;
  mutable std::mutex mutex_;  // for seen_
  std::vector<std::string> seen_;
  std::unique_ptr<ConfigWatch> watch_;
};

TEST_F(ConfigWatchTest, ReportsAWrittenFile) {
  const fs::path file = directory_ / "router.yaml";
  write(file, "1");
  watch(file);
  for (const std::string content : {"2", "3"}) {
    write(file, content);
    EXPECT_TRUE(eventually([&] { return !seen().empty() && seen().back() == content; }));
  }
}

TEST_F(ConfigWatchTest, ReportsAFileReplacedByRename) {
  const fs::path file = directory_ / "router.yaml";
  write(file, "1");
  watch(file);
  replace(file, "2");
  EXPECT_TRUE(comes_to({"2"}));
}

// What the kubelet does: the files are in a time-stamped directory, "..data" links to it, and the
// visible file links into "..data". An update makes a new directory and renames a new link over
// "..data".
TEST_F(ConfigWatchTest, ReportsASwappedConfigMap) {
  fs::create_directory(directory_ / "..2026_1");
  write(directory_ / "..2026_1" / "router.yaml", "1");
  fs::create_directory_symlink("..2026_1", directory_ / "..data");
  fs::create_symlink("..data/router.yaml", directory_ / "router.yaml");
  watch(directory_ / "router.yaml");
  for (int i = 2; i <= 3; ++i) {
    const std::string version = "..2026_" + std::to_string(i);
    fs::create_directory(directory_ / version);
    write(directory_ / version / "router.yaml", std::to_string(i));
    fs::create_directory_symlink(version, directory_ / "..data_tmp");
    fs::rename(directory_ / "..data_tmp", directory_ / "..data");
    fs::remove_all(directory_ / ("..2026_" + std::to_string(i - 1)));
    EXPECT_TRUE(eventually([&] { return seen().size() == static_cast<std::size_t>(i - 1); }));
  }
  EXPECT_EQ(seen(), (std::vector<std::string>{"2", "3"}));
}

TEST_F(ConfigWatchTest, IgnoresTheSameContentAndOtherFiles) {
  const fs::path file = directory_ / "router.yaml";
  write(file, "1");
  watch(file);
  write(directory_ / "other.yaml", "x");
  replace(file, "1");
  write(directory_ / "router.yaml.swp", "x");
  replace(file, "2");
  EXPECT_TRUE(comes_to({"2"}));
}

TEST_F(ConfigWatchTest, ReportsAMissingFileOnceAndItsReturn) {
  const fs::path file = directory_ / "router.yaml";
  write(file, "1");
  watch(file);
  fs::remove(file);
  EXPECT_TRUE(comes_to({"gone"}));
  replace(file, "1");
  EXPECT_TRUE(comes_to({"gone", "1"}));
}

TEST_F(ConfigWatchTest, AnAbsentFileIsRefusedAtTheStart) {
  const auto none = [](const Result<std::string>&) {};
  const auto absent = ConfigWatch::create({.file = directory_ / "absent.yaml"}, none);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::NotFound);
  EXPECT_NE(absent.error().message.find("absent.yaml: No such file"), std::string::npos);
  EXPECT_FALSE(ConfigWatch::create({.file = directory_ / "no" / "x.yaml"}, none).ok());
}

TEST_F(ConfigWatchTest, AFileBeyondTheLimitIsRefusedUnread) {
  const fs::path file = directory_ / "router.yaml";
  write(file, "");
  fs::resize_file(file, kConfigBytesMax + 1);
  EXPECT_EQ(read_config_file(file).error().code, ErrorCode::TooLarge);
  fs::resize_file(file, kConfigBytesMax);
  EXPECT_EQ(read_config_file(file)->size(), kConfigBytesMax);
  EXPECT_FALSE(read_config_file(directory_).ok());
}

TEST_F(ConfigWatchTest, RereadsOnRequestAndReportsChanges) {
  const fs::path target = directory_ / "elsewhere" / "router.yaml";
  fs::create_directory(target.parent_path());
  write(target, "one");
  const fs::path file = directory_ / "router.yaml";
  fs::create_symlink(target, file);
  watch(file);
  watch_->reread();
  // The watch does not notice it: the directory of the link is unchanged.
  replace(target, "two");
  watch_->reread();
  EXPECT_TRUE(comes_to({"two"}));
  fs::remove(target);
  watch_->reread();
  EXPECT_TRUE(comes_to({"two", "gone"}));
}

}  // namespace
}  // namespace sightline::fleet
