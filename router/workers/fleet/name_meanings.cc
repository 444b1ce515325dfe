// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/name_meanings.h"

namespace sightline::fleet {

Ballot ballot_of(const std::vector<family::ServedModel>& models, bool counts) {
  Ballot ballot{.counts = counts};
  for (const family::ServedModel& model : models) {
    bool& is_adapter = ballot.is_adapter[model.id];
    is_adapter = is_adapter || !model.parent.empty();
  }
  return ballot;
}

bool NameMeanings::recast(const Ballot& before, const Ballot& next, bool is_complete) {
  const AdapterNames adapters = adapters_;
  const std::size_t was = before.counts ? 1 : 0;
  const std::size_t is = next.counts ? 1 : 0;
  // The new ballot is counted before the old one is removed, so no count passes through zero.
  for (const auto& [name, is_adapter] : next.is_adapter) {
    NameCount& count = counts_[name];
    ++count.listed;
    (is_adapter ? count.adapter : count.base) += is;
  }
  for (const auto& [name, is_adapter] : before.is_adapter) {
    NameCount& count = counts_[name];
    --count.listed;
    (is_adapter ? count.adapter : count.base) -= was;
    settle(name, count, is_complete);
    // Names of workers that left must not fill the memory.
    if (count.listed == 0) counts_.erase(name);
  }
  for (const auto& [name, is_adapter] : next.is_adapter) settle(name, counts_[name], is_complete);
  return adapters != adapters_;
}

void NameMeanings::settle(const std::string& name, NameCount& count, bool is_complete) {
  const bool is_tie = count.base == count.adapter;
  // A tie keeps a settled meaning. An unsettled name falls to the base model below.
  if (is_tie && count.is_settled && count.listed > 0) return;
  count.is_settled = count.is_settled || (is_complete && !is_tie);
  if (count.adapter > count.base && !base_.contains(name)) {
    adapters_.insert(name);
  } else {
    adapters_.erase(name);
  }
}

std::string NameMeanings::conflict_of(const Ballot& ballot) const {
  for (const auto& [name, is_adapter] : ballot.is_adapter) {
    if (is_adapter == adapters_.contains(name)) continue;
    const bool is_given = base_.contains(name);
    return "it lists `" + name + "` as " + (is_adapter ? "an adapter" : "a base model") + ", but " +
           (is_given ? "model.served_names gives this name to the base model"
                     : std::string("most workers list it as ") +
                           (is_adapter ? "a base model" : "an adapter")) +
           ": give the name the same meaning on all engines";
  }
  return {};
}

}  // namespace sightline::fleet
