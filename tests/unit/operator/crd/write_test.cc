// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/crd/write.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "operator/crd/describe.h"
#include "tests/support/paths.h"

namespace sightline::crd {
namespace {

const std::string kFile = test::in_sources("crds/sightline.dev_multimodalrouters.yaml");

YAML::Node schema() {
  return YAML::LoadFile(kFile)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

struct Field {
  std::string path;
  YAML::Node schema;
};

// All names in the schema below a property, by path as in field_names().
void list(const YAML::Node& of, const std::string& path, std::vector<Field>& fields) {
  const YAML::Node inner = of["items"] ? of["items"] : of;
  const std::string prefix = path + (of["items"] ? "[]" : "");
  if (!inner["properties"]) return;
  // The properties of a resource list's maps are quantities by name.
  for (const auto& property : inner["properties"]) {
    const std::string name = prefix + "." + property.first.as<std::string>();
    fields.push_back({name, property.second});
    list(property.second, name, fields);
  }
}

std::vector<Field> fields_of_schema() {
  std::vector<Field> fields;
  const YAML::Node root = schema();
  for (const char* part : {"spec", "status"}) list(root["properties"][part], part, fields);
  return fields;
}

TEST(CrdSchema, NamesTheFieldsThatAreRead) {
  std::vector<std::string> names;
  for (const Field& field : fields_of_schema()) names.push_back(field.path);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, field_names());
}

TEST(CrdSchema, SaysOfEachFieldWhatItMeans) {
  for (const Field& field : fields_of_schema()) {
    const auto text = field.schema["description"].as<std::string>("");
    EXPECT_GT(text.size(), 3U) << field.path;
    EXPECT_TRUE(text.ends_with('.')) << field.path;
  }
}

TEST(CrdSchema, LimitsEveryTextListAndMap) {
  for (const Field& field : fields_of_schema()) {
    if (!field.path.starts_with("spec.")) continue;
    const auto type = field.schema["type"].as<std::string>("");
    if (type == "string") {
      EXPECT_TRUE(field.schema["maxLength"] || field.schema["enum"]) << field.path;
    }
    if (type == "array") {
      EXPECT_TRUE(field.schema["maxItems"]) << field.path;
      EXPECT_TRUE(field.schema["x-kubernetes-list-type"]) << field.path;
    }
    if (type == "integer") {
      EXPECT_TRUE(field.schema["maximum"] || field.schema["enum"]) << field.path;
    }
    if (field.schema["additionalProperties"]) {
      EXPECT_TRUE(field.schema["maxProperties"]) << field.path;
    }
  }
}

using Words = std::vector<std::string>;

template <class Enum>
void expect_words(const std::vector<Field>& fields, const std::string& path) {
  const auto field =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.path == path; });
  ASSERT_NE(field, fields.end()) << path;
  const YAML::Node allowed = field->schema["enum"];
  const auto words = allowed.as<Words>();
  EXPECT_EQ(words, Words(kWords<Enum>.begin(), kWords<Enum>.end())) << path;
}

TEST(CrdSchema, KnowsTheWordsThatAreRead) {
  const auto fields = fields_of_schema();
  expect_words<EventsMode>(fields, "spec.kv.events");
  expect_words<Forward>(fields, "spec.multimodal.forward");
  expect_words<TransferMode>(fields, "spec.transfer.mode");
  expect_words<OnMiss>(fields, "spec.transfer.shm.onMiss");
  expect_words<NixlBackend>(fields, "spec.transfer.nixl.backend");
  expect_words<ServiceType>(fields, "spec.frontend.service.type");
  expect_words<Policy>(fields, "spec.router.policy");
  expect_words<Backend>(fields, "spec.pools[].backend");
  expect_words<Role>(fields, "spec.pools[].role");
  expect_words<PullPolicy>(fields, "spec.imagePullPolicy");
  expect_words<Strategy>(fields, "spec.rollout.strategy");
  expect_words<PodMonitor>(fields, "spec.monitoring.podMonitor");
  expect_words<LogLevel>(fields, "spec.logLevel");
  expect_words<ConditionStatus>(fields, "status.conditions[].status");
  expect_words<RevisionState>(fields, "status.revisions[].state");
  expect_words<RolloutPhase>(fields, "status.rollout.phase");
}

TEST(CrdSchema, HasTheDefaultsOfTheValues) {
  // The JSON of an empty spec, besides the defaults of the schema.
  Spec spec;
  spec.pools = {{}};
  spec.pools[0].worker_template.emplace();
  spec.nats.managed.emplace();
  spec.transfer.shm.emplace();
  spec.transfer.nixl.emplace();
  const YAML::Node values = YAML::Load(spec_json(spec));
  for (const Field& field : fields_of_schema()) {
    if (!field.schema["default"] || !field.path.starts_with("spec.")) continue;
    if (field.schema["type"].as<std::string>() == "object") continue;
    YAML::Node value = values;
    std::string rest = field.path.substr(std::string("spec.").size());
    bool is_there = true;
    for (std::size_t end = 0; is_there && !rest.empty();) {
      end = std::min(rest.find('.'), rest.size());
      std::string name = rest.substr(0, end);
      rest = end == rest.size() ? "" : rest.substr(end + 1);
      const bool is_list = name.ends_with("[]");
      if (is_list) name.resize(name.size() - 2);
      const YAML::Node inner = value[name];
      is_there = inner.IsDefined();
      if (is_there) value.reset(is_list ? YAML::Node(inner[0]) : inner);
    }
    // An optional part has no value to compare.
    if (!is_there) continue;
    EXPECT_EQ(YAML::Dump(value), YAML::Dump(YAML::Load(YAML::Dump(field.schema["default"]))))
        << field.path;
  }
}

TEST(CrdSchema, IsSmallEnoughForKubectlApply) {
  EXPECT_LT(std::filesystem::file_size(kFile), 150'000U);
}

}  // namespace
}  // namespace sightline::crd
