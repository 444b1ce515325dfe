// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sightline::content {

// LoRA adapters of one rank that are remembered, loaded or not. Beyond them none is believed.
inline constexpr std::size_t kAdaptersMax = 1024;
inline constexpr char kAdaptersLimit[] = "adapters-max";

// From when on, by the engine's clock in unix seconds, what its events announce under a name is of
// the adapter that has it. Events carry the name only, whatever was loaded under it.
struct AdapterMeanings {
  std::map<std::string, double, std::less<>> from_s;  // names that stood for something else before
  bool others = true;                                 // any other name has one meaning

  [[nodiscard]] bool apply_to(std::string_view name, double announced_s) const;
  bool operator==(const AdapterMeanings&) const = default;
};

// An adapter as /v1/models tells it.
struct ListedAdapter {
  std::string name;
  std::string root;      // the path that it was loaded from
  double created_s = 0;  // vLLM: when the list was made, by the engine's clock; 0: not told
};

// The adapters of one rank, list by list. Thread safety: none.
class Adapters {
 public:
  // Takes a list over. True: a name stands for something else than before, or may do so: its path
  // is another one, or it was away.
  bool learn(const std::vector<ListedAdapter>& list);

  [[nodiscard]] const AdapterMeanings& meanings() const { return meanings_; }
  // But for the time of the last list.
  bool operator==(const Adapters& other) const {
    return known_ == other.known_ && meanings_ == other.meanings_;
  }

 private:
  struct Known {
    std::string root;
    bool is_loaded = true;
    bool operator==(const Known&) const = default;
  };

  std::map<std::string, Known> known_;
  AdapterMeanings meanings_;
  double told_s_ = 0;  // when the last list was made
};

}  // namespace sightline::content
