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

using AdapterNames = std::set<std::string, std::less<>>;

// What one worker lists: its names, each once, and whether it calls them adapters.
struct Ballot {
  std::map<std::string, bool> is_adapter;
  bool counts = false;  // the worker may take requests

  bool operator==(const Ballot&) const = default;
};
Ballot ballot_of(const std::vector<family::ServedModel>& models, bool counts);

// Whether a name is the base model's or an adapter's: what most of the workers list that may take
// requests. Where as many list the one as the other it stays what it was; if it was nothing yet, it
// is the base model's. So one worker changes no name for all.
// Thread safety: none.
class NameMeanings {
 public:
  // base: names that the operator gave to the base model; no worker changes them.
  explicit NameMeanings(std::vector<std::string> base) : base_(base.begin(), base.end()) {}

  // One worker's ballot in place of the one before. is_complete: every worker was asked for its
  // names; what is counted until then is forgotten where it becomes a tie. True: a name changed.
  bool recast(const Ballot& before, const Ballot& next, bool is_complete);

  [[nodiscard]] const AdapterNames& adapters() const { return adapters_; }
  // Why the worker contradicts most, with what to do about it; empty: it does not. Pure.
  [[nodiscard]] std::string conflict_of(const Ballot& ballot) const;

 private:
  struct Count {
    std::size_t listed = 0;  // ballots with the name
    std::size_t base = 0;    // of those that count
    std::size_t adapter = 0;
    bool is_settled = false;
  };
  void settle(const std::string& name, Count& count, bool is_complete);

  const AdapterNames base_;
  std::map<std::string, Count, std::less<>> counts_;
  AdapterNames adapters_;
};

}  // namespace sightline::fleet
