// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "operator/desired/pods.h"
#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// How the model's files come into pods: from a claim, from an image, or from the Hugging Face hub
// through an init container. The download image (download_image()) has the command `hf` of
// huggingface_hub 0.34 or later. A user's pod template may give the container "download" another
// image, command and arguments that fill the same folder.
namespace sightline::desired {

// The folder of the model's files in each pod that has them.
std::string model_folder(const crd::Model& model);

// The model argument of an engine: this folder. Without a source it is the name on the hub, because
// engines download themselves. Simulators do not.
std::string engine_model(const RenderInput& input, const crd::Pool& pool);

// Whether an init container downloads the model.
bool is_downloaded(const crd::Model& model);

// The image that downloads: from the operator's flags, else from the first pool of vLLM or SGLang
// engines, which contain the same library. Empty: there is no image.
std::string download_image(const crd::Spec& spec, const crd::NotedImages& images);

// Which files a pod needs of a downloaded model.
enum class ModelFiles {
  // Configuration, tokenizer and templates, which frontends, routers and agents read.
  Small,
  All,
};
// The files that the engines of a pool need.
ModelFiles files_of_engine(const RenderInput& input, const crd::Pool& pool);

// Mounts the files, read-only, in the containers that are added afterwards.
void mount_model(PodSpec& pod, const RenderInput& input);

// Adds the container that downloads the files, if they are downloaded. Call it before the
// containers that read them. It leaves no mounts for these.
void add_download(PodSpec& pod, const RenderInput& input, ModelFiles files);

// Sets the hub's token in a container that downloads.
void set_hub_token(object::Value& container, const crd::Model& model);

}  // namespace sightline::desired
