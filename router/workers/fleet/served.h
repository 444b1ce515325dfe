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

// The names that requests may use as "model", each once, in the order of their addition.
class ServedNames {
 public:
  // A model or a LoRA adapter.
  struct Model {
    std::string id;
    // Of a LoRA adapter, empty for a base model.
    std::string parent;
    bool operator==(const Model&) const = default;
  };

  // Adds a name. A known name without a parent gets this one.
  void add(const std::string& id, const std::string& parent);
  // Returns null if no worker serves the name.
  [[nodiscard]] const Model* find(std::string_view id) const;
  // All names.
  [[nodiscard]] const std::vector<Model>& all() const { return models_; }

  bool operator==(const ServedNames&) const = default;

 private:
  std::vector<Model> models_;
  // In `models_`, by id.
  std::map<std::string, std::size_t, std::less<>> places_;
};

// What the workers serve together: all facts that are needed to prepare a request. It is a small
// value, which can be sent to a process without a fleet.
struct Served {
  // In the order of the workers.
  ServedNames models;
  // The longest prompt of a worker that may take requests. 0: one of these does not report it.
  std::uint32_t prompt_tokens_max = 0;
  // In tokens, of the workers with precise events. Otherwise of the first worker with any size,
  // even a guess.
  std::optional<std::uint32_t> block_size;
  std::vector<contract::EngineFamily> families;  // each once

  // Returns the adapter of a request's model name. Nothing: it is no adapter's name.
  [[nodiscard]] std::optional<std::string> adapter(const std::optional<std::string>& model) const;

  bool operator==(const Served&) const = default;
};

// Returns what the workers of a snapshot serve together. Pure.
Served served_by(const FleetSnapshot& fleet);

// Whether one of them can replace the other without a change of Served.
bool serve_alike(const Worker& a, const Worker& b);

// What a fleet serves. It is computed when a request needs it first after a change.
// Thread safety: all methods from any thread. The fleet outlives it.
class ServedView {
 public:
  explicit ServedView(const Fleet& fleet) : fleet_(fleet) {}

  // Returns the present value.
  [[nodiscard]] std::shared_ptr<const Served> read() const;

 private:
  struct Entry {
    // Of a fleet without workers.
    std::uint64_t revision = 0;
    std::shared_ptr<const Served> served = std::make_shared<const Served>();
  };
  const Fleet& fleet_;
  mutable Published<Entry> latest_{std::make_shared<const Entry>()};
};

}  // namespace sightline::fleet
