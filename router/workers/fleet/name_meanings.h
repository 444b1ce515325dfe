// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "router/engine/family/server_facts.h"

namespace sightline::fleet {

// Names of LoRA adapters.
using AdapterNames = std::set<std::string, std::less<>>;

// The names that one worker lists, each once, and whether they are adapters there.
struct Ballot {
  std::map<std::string, bool> is_adapter;
  // The worker may take requests.
  bool counts = false;

  bool operator==(const Ballot&) const = default;
};
// A name listed both as an adapter and as a base model counts as an adapter.
Ballot ballot_of(const std::vector<family::ServedModel>& models, bool counts);

// Decides whether a name is the base model's or an adapter's: as most of the workers list it that
// may take requests. On a tie it stays as it was. If it was neither yet, it is the base model's. So
// one worker alone never changes a name for all.
// Thread safety: one thread at a time.
class NameMeanings {
 public:
  // `base` are names that the operator gave to the base model. No worker changes them.
  explicit NameMeanings(std::vector<std::string> base) : base_(base.begin(), base.end()) {}

  // Counts a worker's ballot instead of its earlier one. is_complete: every worker was asked for
  // its names. Until then, a tie gives the name to the base model. Returns whether a name changed
  // its meaning.
  bool recast(const Ballot& before, const Ballot& next, bool is_complete);

  // The names that belong to adapters.
  [[nodiscard]] const AdapterNames& adapters() const { return adapters_; }
  // Why the worker contradicts most workers, with a remedy. Empty: it does not. Pure.
  [[nodiscard]] std::string conflict_of(const Ballot& ballot) const;

 private:
  // How many workers list a name, and how.
  struct NameCount {
    // Ballots with the name.
    std::size_t listed = 0;
    // Ballots that count.
    std::size_t base = 0;
    std::size_t adapter = 0;
    // A majority decided once, when all workers had been asked.
    bool is_settled = false;
  };
  // Decides the meaning of one name by its counts.
  void settle(const std::string& name, NameCount& count, bool is_complete);

  const AdapterNames base_;
  std::map<std::string, NameCount, std::less<>> counts_;
  AdapterNames adapters_;
};

}  // namespace sightline::fleet
