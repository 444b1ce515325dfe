// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/engine/family/family.h"

namespace sightline::sglang {

// SGLang 0.5.23. Lives for ever.
const family::Family& sglang();

}  // namespace sightline::sglang
