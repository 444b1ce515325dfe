// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/json.h"
#include "common/base/result.h"

#include "operator/crd/spec.h"
#include "operator/crd/status.h"

namespace sightline::crd {

// The spec of an object that the API server gave. What is not known here is passed over: a newer
// schema may have it. Errors: InvalidArgument, with the path of the field as param, where one is of
// another kind than the schema allows.
Result<Spec> read_spec(json::Value object);
// The status of an object; of one that has none yet, an empty one. Errors: as read_spec().
Result<Status> read_status(json::Value object);

}  // namespace sightline::crd
