// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>

#include <cpprest/streams.h>

#include "operator/kube/https/body.h"

// Only for the sources of this module, because it shows types of the library.
namespace sightline::https {

// The stream to which the library writes an answer. If the body is read meanwhile, a full body
// makes the library wait. If it is read at the end, a full body makes it fail.
concurrency::streams::ostream sink_into(std::shared_ptr<Body> body, bool is_read_meanwhile);

}  // namespace sightline::https
