// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "operator/crd/spec.h"
#include "operator/crd/status.h"

namespace sightline::crd {

// The spec or status as JSON. Leaves out members that are not given, and empty texts, lists and
// maps.
std::string spec_json(const Spec& spec);
std::string status_json(const Status& status);

// The fields of spec and status, for example "spec.kv.blockSize" and "spec.pools[].name". Members
// of maps and of opaque JSON are not among them. Sorted.
std::vector<std::string> field_names();

}  // namespace sightline::crd
