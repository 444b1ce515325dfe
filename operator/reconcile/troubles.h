// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "operator/judge/conditions.h"
#include "operator/kube/client/failure.h"

// What a failure means for the readers of an object. Pure.
namespace sightline::reconcile {

// `what` could not be read or written. The reason is NameTaken, QuotaExceeded, or else `otherwise`.
judge::Trouble trouble_of(const client::Failure& failure, std::string_view otherwise,
                          const std::string& what);

// Whether it lasts until a person repairs something. Otherwise the same request may succeed soon.
bool is_for_people(const client::Failure& failure);

// Whether later writes of this reconciliation would fail too.
bool ends_everything(const client::Failure& failure);

}  // namespace sightline::reconcile
