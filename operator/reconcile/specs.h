// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/crd/spec.h"
#include "operator/crd/status.h"
#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// What is kept of specs: the last one that was accepted, which keeps running while another is not,
// and those that live revisions were rendered from, so that an older one stays as it is. Pure.
namespace sightline::reconcile {

struct KeptSpecs {
  std::optional<crd::Spec> accepted;
  std::map<std::string, crd::Spec> revisions;
  crd::NotedImages images;      // of the operator's flags, as noted
  std::string version;          // of the operator that noted them; empty: none did
  std::string template_digest;  // of the chat template that was accepted; empty: the model's own
};

// The ConfigMap NAME-specs.
object::Value specs_config_map(const desired::Owner& owner, const object::Value& owner_reference,
                               const KeptSpecs& specs);
// What it holds; an entry that cannot be read is left out.
KeptSpecs specs_of(const object::Value& config_map);

// The spec of an older revision: as it was rendered, but for what may change while it runs, which
// is that of the accepted one.
crd::Spec with_live_fields(crd::Spec older, const crd::Spec& accepted);

}  // namespace sightline::reconcile
