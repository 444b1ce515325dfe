// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/families/families.h"

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

}  // namespace sightline::families
