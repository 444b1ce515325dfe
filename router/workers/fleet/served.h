// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/published.h"
#include "common/contract/worker_spec.h"

#include "router/workers/fleet/fleet.h"

namespace sightline::fleet {

// Names that requests may use as "model", each once, in the order in which they came.
class ServedNames {
 public:
  struct Model {
    std::string id;
    std::string parent;  // base model of a LoRA adapter, empty for a base model
    bool operator==(const Model&) const = default;
  };

  // A name that is there already takes over the parent, if it had none.
  void add(const std::string& id, const std::string& parent);
  // Null: nobody has told it.
  [[nodiscard]] const Model* find(std::string_view id) const;
  [[nodiscard]] const std::vector<Model>& all() const { return models_; }

  bool operator==(const ServedNames&) const = default;

 private:
  std::vector<Model> models_;
  std::map<std::string, std::size_t, std::less<>> places_;  // in `models_`, by id
};

// What the workers serve together: all that must be known of them to prepare a request. A small
// value, which can be told to a process that has no fleet.
struct Served {
  ServedNames models;                            // in the order of the workers
  std::uint32_t prompt_tokens_max = 0;           // that one of those takes which may take requests;
                                                 // 0: one of these does not tell
  std::optional<std::uint32_t> block_size;       // tokens, of the workers with precise events, else
                                                 // of the first that has any, even a guess
  std::vector<contract::EngineFamily> families;  // each once

  // The adapter that a request's model name stands for, if it is one.
  [[nodiscard]] std::optional<std::string> adapter(const std::optional<std::string>& model) const;

  bool operator==(const Served&) const = default;
};

Served served_by(const FleetSnapshot& fleet);

// True: one in place of the other changes nothing of what is served.
bool serve_alike(const Worker& a, const Worker& b);

// What a fleet serves now: gathered when a request asks for it first after it has changed.
// Thread safety: all methods from any thread. The fleet outlives it.
class ServedView {
 public:
  explicit ServedView(const Fleet& fleet) : fleet_(fleet) {}

  [[nodiscard]] std::shared_ptr<const Served> read() const;

 private:
  struct Entry {
    std::uint64_t revision = 0;  // of a fleet without workers
    std::shared_ptr<const Served> served = std::make_shared<const Served>();
  };
  const Fleet& fleet_;
  mutable Published<Entry> latest_{std::make_shared<const Entry>()};
};

}  // namespace sightline::fleet
