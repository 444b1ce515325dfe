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

// What the API server's rules cannot see of a spec. Pure.
namespace sightline::judge {

// Objects of others that a spec names, in its namespace.
struct References {
  std::vector<crd::SecretRef> secrets;
  std::optional<crd::ConfigMapRef> chat_template;
  std::optional<std::string> claim;  // with the model's files
};
References references_of(const crd::Spec& spec);

// What there is of them.
struct Found {
  std::set<std::string> secrets;             // "name/key" of each that there is
  std::optional<std::string> chat_template;  // its text
  bool has_claim = false;
};

// Why a spec cannot be rendered: arguments, environment or a pod template that fight what is ours,
// an image that is missing, names that stand twice, references to what is not there. The first one,
// with its field. images: of the operator's flags, as noted.
Trouble why_not_accepted(const crd::Spec& spec, const Found& found, const crd::NotedImages& images);

}  // namespace sightline::judge
