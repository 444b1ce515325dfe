// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/published.h"
#include "common/contract/worker_spec.h"

#include "router/workers/fleet/fleet.h"

namespace sightline::fleet {

// What the workers serve together: all that must be known of them to prepare a request. A small
// value, which can be told to a process that has no fleet.
struct Served {
  struct Model {
    std::string id;
    std::string parent;  // base model of a LoRA adapter, empty for a base model
    bool operator==(const Model&) const = default;
  };
  std::vector<Model> models;                     // each name once, in the order of the workers
  std::uint32_t prompt_tokens_max = 0;           // that all of them take, 0: none tells
  std::optional<std::uint32_t> block_size;       // tokens, of the workers with precise events
  std::vector<contract::EngineFamily> families;  // each once

  // Null: no worker has told it.
  [[nodiscard]] const Model* find(std::string_view id) const;
  // The adapter that a request's model name stands for, if it is one.
  [[nodiscard]] std::optional<std::string> adapter(const std::optional<std::string>& model) const;

  bool operator==(const Served&) const = default;
};

Served served_by(const FleetSnapshot& fleet);

// That of a fleet's latest snapshot, made once for each.
// Thread safety: all methods from any thread. The fleet outlives it.
class ServedView {
 public:
  explicit ServedView(const Fleet& fleet) : fleet_(fleet) {}

  [[nodiscard]] std::shared_ptr<const Served> read() const;

 private:
  struct Entry {
    std::shared_ptr<const FleetSnapshot> snapshot;
    std::shared_ptr<const Served> served;
  };
  const Fleet& fleet_;
  mutable Published<Entry> latest_{std::make_shared<const Entry>()};
};

}  // namespace sightline::fleet
