// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/crd/spec.h"
#include "operator/crd/status.h"
#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// The stored specs: the last accepted one, which continues while another is not accepted, and those
// of live revisions, which keep an older revision as it is. Pure.
namespace sightline::reconcile {

struct KeptSpecs {
  std::optional<crd::Spec> accepted;
  std::map<std::string, crd::Spec> revisions;
  // From the operator's flags, as recorded.
  crd::NotedImages images;
  // The operator version that recorded them. Empty: not recorded yet.
  std::string version;
  // Of the accepted chat template. Empty: the model's own.
  std::string template_digest;
};

// The ConfigMap NAME-specs.
object::Value specs_config_map(const desired::Owner& owner, const object::Value& owner_reference,
                               const KeptSpecs& specs);
// Reads the ConfigMap. Ignores entries that cannot be read.
KeptSpecs specs_of(const object::Value& config_map);

// The spec of an older revision as it was rendered. The fields that may change while it runs come
// from the accepted spec.
crd::Spec with_live_fields(crd::Spec older, const crd::Spec& accepted);

}  // namespace sightline::reconcile
