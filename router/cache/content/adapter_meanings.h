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

// The router remembers this many LoRA adapters of one rank, loaded or not. Blocks of any further
// adapter do not count.
inline constexpr std::size_t kAdaptersMax = 1024;
inline constexpr char kAdaptersLimit[] = "adapters-max";

// The times from which on a rank's events under a name are events of the adapter that has this
// name. Events carry the name only, not the path from which the engine loaded the adapter. Times
// are Unix seconds by the engine's clock.
struct AdapterMeanings {
  // Names with a known adapter. 0 if the name always had this adapter.
  std::map<std::string, double, std::less<>> from_s;
  // True if each name without an entry in from_s has one meaning only.
  bool others = true;

  // Returns whether an event of that time under that name is an event of the present adapter.
  [[nodiscard]] bool apply_to(std::string_view name, double announced_s) const;
  bool operator==(const AdapterMeanings&) const = default;
};

// An adapter as the engine's /v1/models lists it.
struct ListedAdapter {
  std::string name;
  // The path from which the engine loaded the adapter.
  std::string root;
  // In vLLM the time at which it made the list, by the engine's clock. 0 if the list has no time.
  double created_s = 0;
};

// The adapters of one rank, updated by each list.
// Thread safety: one thread at a time.
class Adapters {
 public:
  // Applies a list. Returns true if blocks under a name may be blocks of another adapter than
  // before: its path changed, or an earlier list lacked it. Also returns true when the adapters
  // first exceed kAdaptersMax.
  bool learn(const std::vector<ListedAdapter>& list);

  [[nodiscard]] const AdapterMeanings& meanings() const { return meanings_; }
  // Compares all but the time of the last list.
  bool operator==(const Adapters& other) const {
    return known_ == other.known_ && meanings_ == other.meanings_;
  }

 private:
  // One remembered adapter. is_loaded: the last list has it.
  struct RememberedAdapter {
    std::string root;
    bool is_loaded = true;
    bool operator==(const RememberedAdapter&) const = default;
  };

  std::map<std::string, RememberedAdapter> known_;
  AdapterMeanings meanings_;
  // When the engine made the last list.
  double told_s_ = 0;
};

}  // namespace sightline::content
