// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "common/contract/worker_spec.h"

#include "router/engine/family/family.h"

namespace sightline::families {

// Returns the implementation of a family. It lives as long as the process.
const family::Family& family_of(contract::EngineFamily family);

// Returns the family whose servers name themselves so in "owned_by" of their models. Null if no
// family does.
const family::Family* owner_of(std::string_view owned_by);

// Returns the members of all families to replace in a body that the router does not parse. The
// worker, and with it the family, is chosen only when the body is sent. The list lives as long as
// the process.
std::span<const openai::FixedMember> unread_members();

}  // namespace sightline::families
