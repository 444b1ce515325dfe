// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace sightline {

// An integer that the compiler does not mix up with another kind of integer. `Tag` is an empty type
// that names the kind, `Rep` the integer that it stores.
template <class Tag, class Rep>
struct StrongId {
  Rep value{};
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

// The cache of one data-parallel rank: one engine core of a worker. The fleet assigns these ids
// densely, and never assigns one twice within a process.
using CacheId = StrongId<struct CacheIdTag, std::uint32_t>;

// A token id of the model's vocabulary, as in prompts. KV events may carry wider values (SGLang's
// media sentinels). These are std::int64_t until they are normalised.
using TokenId = std::uint32_t;

}  // namespace sightline

template <class Tag, class Rep>
struct std::hash<sightline::StrongId<Tag, Rep>> {
  std::size_t operator()(const sightline::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
