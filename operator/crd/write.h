// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "operator/crd/spec.h"
#include "operator/crd/status.h"

namespace sightline::crd {

// As JSON. Texts, lists and maps that are empty are left out, and so is what is not given.
std::string spec_json(const Spec& spec);
std::string status_json(const Status& status);

// The fields of spec and status, as "spec.kv.blockSize", "spec.pools[].name"; what stands in maps
// and in what is passed on is not among them. Sorted.
std::vector<std::string> field_names();

}  // namespace sightline::crd
