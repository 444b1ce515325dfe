// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>

#include <cpprest/streams.h>

#include "operator/kube/https/body.h"

// Included by the sources of this module only: it shows types of the library.
namespace sightline::https {

// Where the library writes an answer to. A body that is read meanwhile makes it wait when full;
// one that is read at the end makes it fail.
concurrency::streams::ostream sink_into(std::shared_ptr<Body> body, bool is_read_meanwhile);

}  // namespace sightline::https
