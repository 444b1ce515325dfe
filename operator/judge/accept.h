// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/crd/spec.h"
#include "operator/crd/status.h"
#include "operator/judge/conditions.h"

// Checks of a spec that the API server's validation rules cannot express. Pure.
namespace sightline::judge {

// Objects of the user that a spec names, in its namespace.
struct References {
  std::vector<crd::SecretRef> secrets;
  std::optional<crd::ConfigMapRef> chat_template;
  // The PersistentVolumeClaim with the model's files.
  std::optional<std::string> claim;
};
// The objects that a spec names.
References references_of(const crd::Spec& spec);

// Which of them exist.
struct ExistingObjects {
  // "name/key" of each existing key.
  std::set<std::string> secrets;
  // The text of the chat template.
  std::optional<std::string> chat_template;
  bool has_claim = false;
};

// Why a spec cannot be rendered. The first reason, with its field:
// - arguments, environment or a pod template contradict what the operator sets
// - an image is missing
// - a name appears twice
// - a reference names a missing object
//
// images: from the operator's flags, as recorded in the status.
Trouble why_not_accepted(const crd::Spec& spec, const ExistingObjects& found,
                         const crd::NotedImages& images);

}  // namespace sightline::judge
