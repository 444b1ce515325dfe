// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/pod_merge.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "operator/desired/object_names.h"

namespace sightline::desired {
namespace {

using object::Value;

// Lists whose elements have a name, and the member with the name: patchMergeKey of Kubernetes'
// core/v1 types.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kMergeKeys = {{
    {"containers", "name"},
    {"initContainers", "name"},
    {"volumes", "name"},
    {"env", "name"},
    {"volumeMounts", "mountPath"},
    {"volumeDevices", "devicePath"},
    {"ports", "containerPort"},
    {"imagePullSecrets", "name"},
    {"hostAliases", "ip"},
    {"topologySpreadConstraints", "topologyKey"},
    {"readinessGates", "conditionType"},
    {"resourceClaims", "name"},
}};

std::string_view merge_key_of(std::string_view list) {
  for (const auto& [name, key] : kMergeKeys) {
    if (name == list) return key;
  }
  return {};
}

void merge_into(Value& ours, const Value& users, std::string_view name);

void merge_list(Value& ours, const Value& users, std::string_view key) {
  Value::Items merged = ours.items();
  for (const Value& element : users.items()) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Value& one) {
      return !one[key].is_null() && one[key] == element[key];
    });
    merge_into(same == merged.end() ? merged.emplace_back() : *same, element, {});
  }
  ours = Value(std::move(merged));
}

// `name` is the name of the member that holds the values.
void merge_into(Value& ours, const Value& users, std::string_view name) {
  const std::string_view key = merge_key_of(name);
  if (users.is_array() && !key.empty()) return merge_list(ours, users, key);
  if (!users.is_object()) {
    ours = users;
    return;
  }
  if (!ours.is_object()) ours = Value::object();
  for (const auto& [member, value] : users.members()) {
    if (value.is_null()) {
      ours.erase({member});
    } else {
      merge_into(ours.member(member), value, member);
    }
  }
}

// Fields of our containers: how they start, and how they are probed.
constexpr std::array<std::string_view, 11> kOursOfContainer = {
    "command",        "args",         "image",     "ports",      "envFrom",      "livenessProbe",
    "readinessProbe", "startupProbe", "lifecycle", "workingDir", "restartPolicy"};
constexpr std::array<std::string_view, 3> kOursOfPod = {"restartPolicy", "readinessGates",
                                                        "terminationGracePeriodSeconds"};
constexpr std::array<std::string_view, 3> kLists = {"containers", "initContainers", "volumes"};
// A user may replace the volumes of the model, of scratch space and of shared memory.
constexpr std::array<std::string_view, 5> kOurVolumes = {"config", "identity", "nats", "template",
                                                         "tokens"};
// Variables of program_settings.h. Users may set other settings of the programs this way.
constexpr std::array<std::string_view, 12> kOurVariables = {
    "SIGHTLINE_MODEL_PATH",   "SIGHTLINE_SERVED_MODEL_NAME", "SIGHTLINE_IDENTITY_KEY_FILE",
    "SIGHTLINE_SCOPE",        "SIGHTLINE_REVISION",          "SIGHTLINE_REPLICA_NAME",
    "SIGHTLINE_NATS",         "SIGHTLINE_NATS_NKEY_FILE",    "SIGHTLINE_NATS_CREDENTIALS_FILE",
    "SIGHTLINE_NATS_CA_FILE", "SIGHTLINE_LOG_LEVEL",         "PYTHONHASHSEED"};

template <std::size_t kCount>
bool is_among(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

using Fields = std::vector<std::string>;

std::string element_of(std::string_view list, std::size_t number) {
  return "spec." + std::string(list) + "[" + std::to_string(number) + "]";
}

void add_metadata(Fields& fields, const Value& metadata) {
  for (const auto& [name, value] : metadata.members()) {
    if (name != "labels" && name != "annotations") fields.push_back("metadata." + name);
  }
  for (const std::string_view map : {"labels", "annotations"}) {
    for (const auto& [name, value] : metadata[map].members()) {
      const bool is_ours =
          name.starts_with("sightline.dev/") || name.starts_with("app.kubernetes.io/");
      if (is_ours) fields.push_back("metadata." + std::string(map) + "." + name);
    }
  }
}

void add_container(Fields& fields, const Value& container, const std::string& place) {
  for (const auto& [name, value] : container.members()) {
    // A value of another kind would replace the whole list.
    const bool is_list_gone = (name == "env" || name == "volumeMounts") && !value.is_array();
    if (is_among(kOursOfContainer, name) || is_list_gone) fields.push_back(place + "." + name);
  }
  const auto& env = container["env"].items();
  for (std::size_t i = 0; i < env.size(); ++i) {
    if (!is_among(kOurVariables, env[i]["name"].text())) continue;
    fields.push_back(place + ".env[" + std::to_string(i) + "].name");
  }
}

}  // namespace

void merge_pod_template(Value& ours, const Value& users) { merge_into(ours, users, {}); }

std::vector<std::string> fights(const Value& users, std::string_view container) {
  Fields fields;
  for (const auto& [name, value] : users.members()) {
    if ((name != "metadata" && name != "spec") || !value.is_object()) fields.push_back(name);
  }
  add_metadata(fields, users["metadata"]);
  const Value& spec = users["spec"];
  for (const auto& [name, value] : spec.members()) {
    // A value of another kind would replace the whole list.
    const bool is_list_gone = is_among(kLists, name) && !value.is_array();
    if (is_among(kOursOfPod, name) || is_list_gone) fields.push_back("spec." + name);
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    const auto& containers = spec[list].items();
    for (std::size_t i = 0; i < containers.size(); ++i) {
      const std::string_view name = containers[i]["name"].text();
      // A worker's pod also has our agent.
      const bool is_ours = name == container || (container == kWorker && name == kAgent);
      if (is_ours) add_container(fields, containers[i], element_of(list, i));
    }
  }
  const auto& volumes = spec["volumes"].items();
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    if (!is_among(kOurVolumes, volumes[i]["name"].text())) continue;
    fields.push_back(element_of("volumes", i));
  }
  return fields;
}

}  // namespace sightline::desired
