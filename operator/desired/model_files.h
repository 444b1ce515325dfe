// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "operator/desired/pods.h"
#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// How the model's files come into pods: from a claim, from an image, or from the Hugging Face hub
// by an init container. Its image (download_image()) has the command `hf` of huggingface_hub 0.34
// or later; a user's pod template may give the container "download" another image, command and
// arguments that fill the same folder.
namespace sightline::desired {

// The folder of the model's files in every pod that has them.
std::string model_folder(const crd::Model& model);

// What an engine is given as its model: that folder, or the name of the hub where no source is
// given: engines download by themselves. Simulators do not.
std::string engine_model(const Scene& scene, const crd::Pool& pool);

bool is_downloaded(const crd::Model& model);

// The image that downloads: of the operator's flags, else that of the first pool of vLLM or SGLang
// engines, which download by themselves with the same library. Empty: there is none.
std::string download_image(const crd::Spec& spec, const crd::NotedImages& images);

// Which files a pod needs of a model that is downloaded.
enum class ModelFiles {
  Small,  // configuration, tokenizer, templates: what frontends, routers and agents read
  All,
};
ModelFiles files_of_engine(const Scene& scene, const crd::Pool& pool);

// Mounts the files, read-only, in the containers that are added from here on.
void mount_model(PodSpec& pod, const Scene& scene);

// Adds what downloads them, if they are; before the containers that read them. It leaves no mounts.
void add_download(PodSpec& pod, const Scene& scene, ModelFiles files);

// The hub's token, for who downloads.
void set_hub_token(object::Value& container, const crd::Model& model);

}  // namespace sightline::desired
