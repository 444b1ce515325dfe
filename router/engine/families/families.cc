// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/families/families.h"

#include <vector>

#include "router/engine/sglang/sglang.h"
#include "router/engine/vllm/vllm.h"

namespace sightline::families {

const family::Family& family_of(contract::EngineFamily family) {
  switch (family) {
    case contract::EngineFamily::Vllm:
      return vllm::vllm();
    case contract::EngineFamily::Sglang:
      return sglang::sglang();
  }
  return vllm::vllm();
}

const family::Family* owner_of(std::string_view owned_by) {
  for (const auto family : contract::kEngineFamilies) {
    if (family_of(family).name() == owned_by) return &family_of(family);
  }
  return nullptr;
}

std::span<const openai::FixedMember> unread_members() {
  static const auto kAll = [] {
    std::vector<openai::FixedMember> all;
    for (const auto family : contract::kEngineFamilies) {
      const auto members = family_of(family).unread_members();
      all.insert(all.end(), members.begin(), members.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace sightline::families
