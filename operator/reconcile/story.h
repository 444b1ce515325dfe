// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/crd/status.h"
#include "operator/kube/object/value.h"
#include "operator/kube/recorder/event_series.h"

namespace sightline::reconcile {

// The events of a reconciliation: one for each changed verdict. Together they are the history of
// the object. At the beginning, only Accepted and failures are events. Pure.
std::vector<recorder::ObjectEvent> happenings_of(const object::Value& object,
                                                 const std::vector<crd::Condition>& before,
                                                 const std::vector<crd::Condition>& now);

}  // namespace sightline::reconcile
