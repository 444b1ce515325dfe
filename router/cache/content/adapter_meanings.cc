// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/content/adapter_meanings.h"

#include <algorithm>
#include <limits>

namespace sightline::content {
namespace {

// The list has its time in whole seconds, and the clocks of an engine's hosts may differ a little.
constexpr double kMargin_s = 2;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

bool AdapterMeanings::apply_to(std::string_view name, double announced_s) const {
  const auto found = from_s.find(name);
  return found == from_s.end() ? others : announced_s >= found->second;
}

bool Adapters::learn(const std::vector<ListedAdapter>& list) {
  for (auto& entry : known_) {
    const auto is_it = [&](const ListedAdapter& told) { return told.name == entry.first; };
    entry.second.is_loaded = entry.second.is_loaded && std::any_of(list.begin(), list.end(), is_it);
  }
  bool has_changed = false;
  double told_s = told_s_;
  for (const ListedAdapter& told : list) {
    told_s = std::max(told_s, told.created_s);
    auto known = known_.find(told.name);
    if (known == known_.end()) {
      // A server could list new names without end, so their number has a limit.
      if (known_.size() < kAdaptersMax) {
        known_[told.name] = {.root = told.root};
        meanings_.from_s.try_emplace(told.name, 0);
      } else {
        has_changed = has_changed || meanings_.others;
        meanings_.others = false;
      }
    } else if (!known->second.is_loaded || known->second.root != told.root) {
      known->second = {.root = told.root};
      // If created_s did not increase, it is not the time of the list. The time of the change is
      // then unknown, so blocks under this name never count again.
      meanings_.from_s[told.name] = told.created_s > told_s_ ? told.created_s + kMargin_s : kNever;
      has_changed = true;
    }
  }
  told_s_ = told_s;
  return has_changed;
}

}  // namespace sightline::content
