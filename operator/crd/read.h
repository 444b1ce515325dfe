// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/json.h"
#include "common/base/result.h"

#include "operator/crd/spec.h"
#include "operator/crd/status.h"

namespace sightline::crd {

// Reads the spec of an object from the API server. Ignores unknown fields, because a newer schema
// may have them. Errors: InvalidArgument with the field's path as param, for a field of another
// kind than the schema allows.
Result<Spec> read_spec(json::Value object);
// Reads the status of an object. It is empty if the object has no status yet. Errors: see
// read_spec().
Result<Status> read_status(json::Value object);

}  // namespace sightline::crd
