// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/paths.h"
#include "tests/unit/operator/desired/render_inputs.h"

// The objects rendered from golden/NAME.spec.json are in golden/NAME.json, in their order. An
// object that equals the one in small.json appears as "as in small: KIND NAME". So a golden file
// shows at a glance what a field of the spec does.
//
// Review a difference that a change of the builders makes, like code. Each run writes all files to
// golden/desired in the build folder. Accept them with `cp build/release/golden/desired/*.json
// tests/unit/operator/desired/golden/`.
namespace sightline::desired {
namespace {

namespace fs = std::filesystem;
using object::Value;

const fs::path kGoldens = sightline::test::in_sources("tests/unit/operator/desired/golden");
const fs::path kRendered = sightline::test::in_build("golden/desired");
constexpr std::string_view kSpecSuffix = ".spec.json";
constexpr const char* kSmall = "small";
constexpr std::size_t kColumnsMax = 120;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kGoldens)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(kSpecSuffix)) {
      found.push_back(file.substr(0, file.size() - kSpecSuffix.size()));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// JSON for readers: a value that fits into a line stays on one line.
std::string pretty(const Value& value, std::size_t indent, std::size_t used) {
  const std::string line = value.to_text();
  const bool is_short = indent + used + line.size() <= kColumnsMax;
  if (is_short || (!value.is_array() && !value.is_object())) return line;
  const std::string margin(indent + 1, ' ');
  std::string out;
  for (const Value& item : value.items()) {
    out += (out.empty() ? "[\n" : ",\n") + margin + pretty(item, indent + 1, 1);
  }
  for (const auto& [name, member] : value.members()) {
    const std::string key = Value(name).to_text() + ": ";
    out += (out.empty() ? "{\n" : ",\n") + margin + key;
    out += pretty(member, indent + 1, key.size() + 1);
  }
  return out + "\n" + std::string(indent, ' ') + (value.is_array() ? "]" : "}");
}

// With two workers in the router's file, and two pods that each selector pool finds. All have one
// revision, for any spec.
std::vector<Value> objects_of(const std::string& name) {
  const auto file = Value::parse(content_of(kGoldens / (name + std::string(kSpecSuffix))));
  SL_CHECK(file.ok());
  RenderInput input = test::render_input_of(test::spec_of(file->to_text()));
  input.revision = "k2x9p0aa";
  const std::vector<WorkerFields> workers = {
      {{"name", "w0"}, {"url", "http://10.0.0.7:8000"}, {"agent", "true"}},
      {{"name", "w1"}, {"url", "http://10.0.0.8:8000"}, {"agent", "true"}, {"drain", "true"}}};
  std::vector<ForeignPod> foreign;
  for (const crd::Pool& pool : input.spec.pools) {
    if (!pool.selector) continue;
    foreign.push_back({.pool = pool.name, .name = pool.name + "-1", .ip = "fd00::1"});
    foreign.push_back({.pool = pool.name, .name = pool.name + "-0", .ip = "10.0.1.2"});
  }
  return test::all_objects(input, workers, foreign);
}

std::string rendered(const std::string& name) {
  std::vector<Value> objects = objects_of(name);
  const std::vector<Value> small = name == kSmall ? std::vector<Value>() : objects_of(kSmall);
  for (Value& object : objects) {
    if (std::find(small.begin(), small.end(), object) == small.end()) continue;
    object = "as in small: " + std::string(object["kind"].text()) + " " +
             std::string(object.at({"metadata", "name"}).text());
  }
  return pretty(Value(std::move(objects)), 0, 0) + "\n";
}

TEST(Goldens, ThereAreAtLeastTwenty) { EXPECT_GE(names().size(), 20U); }

TEST(Goldens, WhatIsRenderedIsWhatStandsThere) {
  fs::create_directories(kRendered);
  for (const std::string& name : names()) {
    const std::string text = rendered(name);
    std::ofstream(kRendered / (name + ".json"), std::ios::binary) << text;
    EXPECT_TRUE(text == content_of(kGoldens / (name + ".json")))
        << name << " differs: diff " << kGoldens / (name + ".json") << " "
        << kRendered / (name + ".json");
  }
}

TEST(Goldens, NoneStandsThereWithoutASpec) {
  const std::vector<std::string> known = names();
  for (const auto& entry : fs::directory_iterator(kGoldens)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(kSpecSuffix)) continue;
    EXPECT_TRUE(std::find(known.begin(), known.end(), entry.path().stem().string()) != known.end())
        << file;
  }
}

}  // namespace
}  // namespace sightline::desired
