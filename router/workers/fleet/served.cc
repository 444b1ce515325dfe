// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/served.h"

#include <algorithm>
#include <utility>

namespace sightline::fleet {
namespace {

void add_model(Served& served, const ServedModel& model) {
  const auto known = std::find_if(served.models.begin(), served.models.end(),
                                  [&](const Served::Model& m) { return m.id == model.id; });
  if (known == served.models.end()) {
    served.models.push_back({model.id, model.parent});
  } else if (known->parent.empty()) {
    known->parent = model.parent;
  }
}

}  // namespace

const Served::Model* Served::find(std::string_view id) const {
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const Model& model) { return model.id == id; });
  return found == models.end() ? nullptr : &*found;
}

std::optional<std::string> Served::adapter(const std::optional<std::string>& model) const {
  const Model* found = model ? find(*model) : nullptr;
  return found != nullptr && !found->parent.empty() ? model : std::nullopt;
}

Served served_by(const FleetSnapshot& fleet) {
  Served served;
  for (const auto& worker : fleet.workers) {
    for (const ServedModel& model : worker->models) add_model(served, model);
    const std::uint32_t tokens = worker->max_model_len;
    if (tokens > 0 && (served.prompt_tokens_max == 0 || tokens < served.prompt_tokens_max)) {
      served.prompt_tokens_max = tokens;
    }
    // The fleet lets only workers of one block size be precise.
    if (!served.block_size && worker->is_precise() && worker->block_size.tokens() > 0) {
      served.block_size = worker->block_size.tokens();
    }
    auto& families = served.families;
    if (std::find(families.begin(), families.end(), worker->spec.family) == families.end()) {
      families.push_back(worker->spec.family);
    }
  }
  return served;
}

std::shared_ptr<const Served> ServedView::read() const {
  auto snapshot = fleet_.snapshot();
  const auto latest = latest_.read();
  if (latest->snapshot == snapshot) return latest->served;
  auto served = std::make_shared<const Served>(served_by(*snapshot));
  latest_.publish(std::make_shared<const Entry>(Entry{std::move(snapshot), served}));
  return served;
}

}  // namespace sightline::fleet
