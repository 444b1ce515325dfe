// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/model_files.h"

#include <string_view>
#include <utility>
#include <vector>

#include "operator/crd/words.h"

namespace sightline::desired {

using object::Value;

namespace {

constexpr std::string_view kVolume = "model";
constexpr std::string_view kScheme = "hf://";
// config.json, tokenizer.json, chat_template.jinja and so on, without weights. One pattern, because
// older and newer versions of `hf` need different spellings for several.
constexpr std::string_view kSmallFiles = "*.j[si]*";

struct Repository {
  std::string name;
  std::string revision;  // empty: the newest
};

Repository repository_of(const crd::Model& model) {
  if (!model.source) return {.name = model.name, .revision = {}};
  const std::string place = model.source->uri.value_or("").substr(kScheme.size());
  const std::size_t at = place.find('@');
  if (at == std::string::npos) return {.name = place, .revision = {}};
  return {.name = place.substr(0, at), .revision = place.substr(at + 1)};
}

Value volume_source(const crd::Model& model) {
  Value source = Value::object();
  if (is_downloaded(model)) {
    source.member("emptyDir") = Value::object();
  } else if (model.source->pvc) {
    source.set({"persistentVolumeClaim", "claimName"}, model.source->pvc->claim_name);
    source.set({"persistentVolumeClaim", "readOnly"}, true);
  } else {
    source.set({"image", "reference"}, model.source->image->reference);
    source.set({"image", "pullPolicy"}, crd::word_of(model.source->image->pull_policy));
  }
  return source;
}

}  // namespace

std::string model_folder(const crd::Model& model) {
  std::string below;
  if (model.source && model.source->pvc) below = model.source->pvc->path;
  if (model.source && model.source->image) below = model.source->image->path;
  return below.empty() ? std::string(kModelPath) : std::string(kModelPath) + "/" + below;
}

std::string engine_model(const RenderInput& input, const crd::Pool& pool) {
  const crd::Model& model = input.spec.model;
  const bool is_own = model.source || pool.backend == crd::Backend::Simulator;
  return is_own ? model_folder(model) : model.name;
}

bool is_downloaded(const crd::Model& model) { return !model.source || model.source->uri; }

std::string download_image(const crd::Spec& spec, const crd::NotedImages& images) {
  if (!images.download.empty()) return images.download;
  for (const crd::Pool& pool : spec.pools) {
    const bool has_command =
        // The images of these engines contain `hf`.
        pool.backend == crd::Backend::Vllm || pool.backend == crd::Backend::Sglang;
    if (has_command && pool.worker_template && !pool.worker_template->image.empty()) {
      return pool.worker_template->image;
    }
  }
  return {};
}

ModelFiles files_of_engine(const RenderInput& input, const crd::Pool& pool) {
  // Without a source the engine downloads the weights itself.
  const bool is_small = !input.spec.model.source || pool.backend == crd::Backend::Simulator;
  return is_small ? ModelFiles::Small : ModelFiles::All;
}

void mount_model(PodSpec& pod, const RenderInput& input) {
  pod.mount(kVolume, volume_source(input.spec.model), kModelPath, true);
}

void add_download(PodSpec& pod, const RenderInput& input, ModelFiles files) {
  const crd::Model& model = input.spec.model;
  if (!is_downloaded(model)) return;
  const Repository repository = repository_of(model);
  std::vector<std::string> args = {repository.name, "--local-dir", std::string(kModelPath)};
  if (!repository.revision.empty()) {
    args.insert(args.end(), {"--revision", repository.revision});
  }
  if (files == ModelFiles::Small) {
    args.insert(args.end(), {"--include", std::string(kSmallFiles)});
  }
  Value container = Value::object();
  container.member("name") = "download";
  container.member("image") = download_image(input.spec, input.images);
  container.member("imagePullPolicy") = crd::word_of(input.spec.image_pull_policy);
  container.member("command") = texts_of({"hf", "download"});
  container.member("args") = texts_of(args);
  // `hf` needs a HOME that it can write, and the root file system is read-only.
  set_env(container, "HOME", "/tmp");
  set_hub_token(container, model);
  Value security = restricted_container();
  if (input.spec.pod_user == crd::PodUser::Fixed) security.member("runAsUser") = kUser;
  container.member("securityContext") = std::move(security);
  pod.begin_mounts();
  // Only the download may write. The other containers mount the volume read-only.
  pod.mount(kVolume, volume_source(model), kModelPath, false);
  pod.mount_scratch("download", "/tmp");
  pod.add_init(std::move(container));
  pod.begin_mounts();
}

void set_hub_token(Value& container, const crd::Model& model) {
  if (model.token_secret) set_env_of_secret(container, "HF_TOKEN", *model.token_secret);
}

}  // namespace sightline::desired
