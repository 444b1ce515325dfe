// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/program_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "operator/crd/words.h"
#include "operator/desired/model_files.h"

namespace sightline::desired {
namespace {

using object::Value;

// "20Mi" in the form of `sightline`: "20MiB". Decimal units become bytes.
std::string size_of(const std::string& quantity) {
  if (quantity.ends_with("i")) return quantity + "B";
  const std::string digits = quantity.substr(0, quantity.size() - 1);
  if (quantity.ends_with("k")) return digits + "000";
  if (quantity.ends_with("M")) return digits + "000000";
  if (quantity.ends_with("G")) return digits + "000000000";
  return quantity;
}

// Numbers need no quotes in YAML.
Value yaml_value(const std::string& text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return text;
  if (text.find('.') != std::string::npos) return number;
  return static_cast<std::int64_t>(number);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ",") + part;
  return out;
}

std::string nats_urls(const RenderInput& input) {
  if (input.spec.nats.external) return joined(input.spec.nats.external->urls);
  return "nats://" + shared_name(input.owner, kNats) + ":4222";
}

Value settings_value(const std::map<std::string, std::string>& settings) {
  Value file = Value::object();
  for (const auto& [name, value] : settings) {
    const std::size_t dot = name.find('.');
    file.set({name.substr(0, dot), name.substr(dot + 1)}, yaml_value(value));
  }
  return file;
}

void add_workers(Value& file, const std::vector<WorkerFields>& workers) {
  for (const WorkerFields& fields : workers) {
    if (file["workers"].size() == kFileWorkersMax) return;
    Value worker = Value::object();
    for (const auto& [name, value] : fields) worker.member(name) = value;
    file.member("workers").append(std::move(worker));
  }
}

Value config_map(const RenderInput& input, std::string name) {
  return object_of(input, {.api_version = "v1",
                           .kind = "ConfigMap",
                           .name = std::move(name),
                           .labels = labels(input.owner, "config", input.revision)});
}

}  // namespace

std::vector<WorkerFields> by_name_once(std::vector<WorkerFields> workers) {
  const auto name_of = [](const WorkerFields& worker) {
    return std::string_view(worker.at("name"));
  };
  // Stable: of several workers with one name the first one stays.
  std::stable_sort(workers.begin(), workers.end(), [&](const auto& left, const auto& right) {
    return name_of(left) < name_of(right);
  });
  const auto end = std::unique(
      workers.begin(), workers.end(),
      [&](const auto& left, const auto& right) { return name_of(left) == name_of(right); });
  workers.erase(end, workers.end());
  return workers;
}

std::map<std::string, std::string> revision_environment(const RenderInput& input) {
  return {
      {"SIGHTLINE_MODEL_PATH", model_folder(input.spec.model)},
      {"SIGHTLINE_SERVED_MODEL_NAME", input.spec.model.name},
      {"SIGHTLINE_IDENTITY_KEY_FILE", std::string(kIdentityPath) + "/key"},
      {"SIGHTLINE_SCOPE", input.owner.name_space + "/" + input.owner.name},
      {"SIGHTLINE_REVISION", input.revision},
  };
}

std::map<std::string, std::string> nats_environment(const RenderInput& input) {
  const std::string folder = std::string(kNatsPath) + "/";
  const auto& external = input.spec.nats.external;
  std::map<std::string, std::string> environment = {{"SIGHTLINE_NATS", nats_urls(input)}};
  if (!external) environment["SIGHTLINE_NATS_NKEY_FILE"] = folder + "seed";
  if (external && external->credentials_secret) {
    environment["SIGHTLINE_NATS_CREDENTIALS_FILE"] = folder + "credentials";
  }
  if (external && external->ca_secret) environment["SIGHTLINE_NATS_CA_FILE"] = folder + "ca.crt";
  return environment;
}

std::map<std::string, std::string> live_settings(const RenderInput& input) {
  const crd::Spec& spec = input.spec;
  std::map<std::string, std::string> settings = {
      {"routing.policy", std::string(crd::word_of(spec.router.policy))},
      {"routing.overlap_credit", spec.router.weights.overlap_credit},
      {"routing.host_credit", spec.router.weights.host_credit},
      {"routing.disk_credit", spec.router.weights.disk_credit},
      {"routing.prefill_load_scale", spec.router.weights.prefill_load_scale},
      {"routing.decode_load_scale", spec.router.weights.decode_load_scale},
      {"server.concurrent_requests_max", std::to_string(spec.frontend.concurrent_requests_max)},
      {"media.images_max", std::to_string(spec.multimodal.images_max)},
      {"media.image_bytes_max", size_of(spec.multimodal.image_bytes_max)},
      {"media.connect_timeout", spec.multimodal.fetch.connect_timeout},
      {"media.fetch_timeout", spec.multimodal.fetch.timeout},
      {"media.redirects_max", std::to_string(spec.multimodal.fetch.redirects_max)},
      {"media.downloads_max", std::to_string(spec.multimodal.fetch.downloads_max)},
      {"media.forward", spec.multimodal.forward == crd::Forward::Url ? "url" : "bytes"},
      {"fleet.request_timeout", spec.router.request_timeout},
      {"log.level", std::string(crd::word_of(spec.log_level))},
  };
  if (spec.model.max_model_len) {
    settings["model.max_model_len"] = std::to_string(*spec.model.max_model_len);
  }
  return settings;
}

std::string router_file(const RenderInput& input, const std::vector<WorkerFields>& workers) {
  Value file = settings_value(live_settings(input));
  if (workers.size() <= kFileWorkersMax) add_workers(file, workers);
  return file.to_text() + "\n";
}

std::string frontend_file(const RenderInput& input) {
  auto settings = live_settings(input);
  // Frontends choose no workers.
  std::erase_if(settings,
                [](const auto& setting) { return setting.first.starts_with("routing."); });
  return settings_value(settings).to_text() + "\n";
}

std::string workers_file(const std::vector<WorkerFields>& workers) {
  Value file = Value::object();
  add_workers(file, workers);
  return file.to_text() + "\n";
}

std::string revision_config_name(const RenderInput& input) {
  return input.owner.name + "-" + input.revision;
}

std::string live_config_name(const RenderInput& input) {
  return revision_name(input.owner, input.revision, "live");
}

std::string template_config_name(const RenderInput& input) {
  return revision_name(input.owner, input.revision, "template");
}

Value revision_config_map(const RenderInput& input) {
  Value map = config_map(input, revision_config_name(input));
  map.member("immutable") = true;
  for (const auto& [name, value] : revision_environment(input)) map.set({"data", name}, value);
  return map;
}

Value template_config_map(const RenderInput& input) {
  Value map = config_map(input, template_config_name(input));
  map.member("immutable") = true;
  map.set({"data", kTemplateFile}, input.chat_template.value_or(""));
  return map;
}

Value live_config_map(const RenderInput& input, const std::vector<WorkerFields>& workers) {
  Value map = config_map(input, live_config_name(input));
  map.set({"data", kFrontendFile}, frontend_file(input));
  map.set({"data", kRouterFile}, router_file(input, workers));
  map.set({"data", kLogLevelKey}, crd::word_of(input.spec.log_level));
  return map;
}

}  // namespace sightline::desired
