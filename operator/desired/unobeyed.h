// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "operator/crd/spec.h"

namespace sightline::desired {

// Fields of a spec that are accepted, but that `sightline` cannot obey, each with what happens
// instead: "spec.model.chatTemplate: …". A condition shows them, because a field must never be
// ignored silently. spec.transfer and pools of backend trtllm have conditions of their own.
std::vector<std::string> unobeyed(const crd::Spec& spec);

}  // namespace sightline::desired
