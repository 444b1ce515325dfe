// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string_view>

#include "common/contract/worker_spec.h"

#include "router/engine/family/family.h"

namespace sightline::families {

// The implementation of a family. Lives for ever.
const family::Family& family_of(contract::EngineFamily family);

// The family whose servers call themselves so in "owned_by" of their models; null: none known.
const family::Family* owner_of(std::string_view owned_by);

// Those of all families: which one reads a body that the router does not read is known only when
// it is sent. Lives for ever.
std::span<const openai::FixedMember> unread_members();

}  // namespace sightline::families
