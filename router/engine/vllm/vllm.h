// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/engine/family/family.h"

namespace sightline::vllm {

// vLLM 0.9 to 0.32. Lives for ever.
const family::Family& vllm();

}  // namespace sightline::vllm
