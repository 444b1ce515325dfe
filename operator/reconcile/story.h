// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/crd/status.h"
#include "operator/kube/object/value.h"
#include "operator/kube/recorder/event_series.h"

namespace sightline::reconcile {

// Each verdict that changed is an event: read one after the other, they are the object's story. Of
// those that an object begins with, that it was accepted is enough, and what could not be done for
// it. Pure.
std::vector<recorder::Happening> happenings_of(const object::Value& object,
                                               const std::vector<crd::Condition>& before,
                                               const std::vector<crd::Condition>& now);

}  // namespace sightline::reconcile
