// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sightline {

// An integer that cannot be mixed up with another kind of integer.
template <class Tag, class Rep>
struct StrongId {
  Rep value{};
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

// One prefix cache: a worker's engine core, that is, one data-parallel rank. Dense, assigned by
// the fleet, never reused within a process.
using CacheId = StrongId<struct CacheIdTag, std::uint32_t>;

// Token id of the model's vocabulary, as in prompts. Events may carry wider values (SGLang's
// media sentinels): those are std::int64_t until normalised.
using TokenId = std::uint32_t;

}  // namespace sightline

template <class Tag, class Rep>
struct std::hash<sightline::StrongId<Tag, Rep>> {
  std::size_t operator()(const sightline::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
