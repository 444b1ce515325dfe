// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/engine/family/family.h"

namespace sightline::sglang {

// Returns the family of SGLang 0.5.23. It lives as long as the process.
const family::Family& sglang();

}  // namespace sightline::sglang
