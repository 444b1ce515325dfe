// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/feed.h"

#include <algorithm>
#include <iterator>

namespace sightline::fleet {
namespace {

std::vector<FoundRank> with_events(const std::vector<FoundRank>& ranks) {
  std::vector<FoundRank> known;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(known),
               [](const FoundRank& rank) { return rank.events.has_value(); });
  return known;
}

}  // namespace

bool same_events(const std::vector<FoundRank>& a, const std::vector<FoundRank>& b) {
  const std::vector<FoundRank> known = with_events(a);
  if (known != with_events(b)) return false;
  return known.empty() || (a.size() > 1) == (b.size() > 1);
}

}  // namespace sightline::fleet
