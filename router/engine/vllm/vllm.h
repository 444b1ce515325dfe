// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/engine/family/family.h"

namespace sightline::vllm {

// Returns the family of vLLM 0.9 to 0.32. It lives as long as the process.
const family::Family& vllm();

}  // namespace sightline::vllm
