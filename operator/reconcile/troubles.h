// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "operator/judge/conditions.h"
#include "operator/kube/client/failure.h"

// What a failure means to who reads the object. Pure.
namespace sightline::reconcile {

// `what` could not be read or written. Reason: NameTaken, QuotaExceeded, else `otherwise`.
judge::Trouble trouble_of(const client::Failure& failure, std::string_view otherwise,
                          const std::string& what);

// Whether it stays until a person mends it; else the same request may succeed a moment later.
bool is_for_people(const client::Failure& failure);

// Whether nothing that follows would be written either.
bool ends_everything(const client::Failure& failure);

}  // namespace sightline::reconcile
