// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/served.h"

#include <algorithm>
#include <utility>

namespace sightline::fleet {

void ServedNames::add(const std::string& id, const std::string& parent) {
  const auto [place, is_new] = places_.try_emplace(id, models_.size());
  if (is_new) {
    models_.push_back({id, parent});
  } else if (std::string& known = models_[place->second].parent; known.empty()) {
    known = parent;
  }
}

const ServedNames::Model* ServedNames::find(std::string_view id) const {
  const auto place = places_.find(id);
  return place == places_.end() ? nullptr : &models_[place->second];
}

std::optional<std::string> Served::adapter(const std::optional<std::string>& model) const {
  const ServedNames::Model* found = model ? models.find(*model) : nullptr;
  return found != nullptr && !found->parent.empty() ? model : std::nullopt;
}

Served served_by(const FleetSnapshot& fleet) {
  Served served;
  bool is_sure = false;  // of the block size
  for (const auto& worker : fleet.workers) {
    for (const ServedModel& model : worker->models) served.models.add(model.id, model.parent);
    const std::uint32_t tokens = worker->max_model_len;
    if (tokens > 0 && (served.prompt_tokens_max == 0 || tokens < served.prompt_tokens_max)) {
      served.prompt_tokens_max = tokens;
    }
    const std::uint32_t size = worker->block_size.tokens();
    // The fleet lets only workers of one block size be precise.
    if (!is_sure && size > 0 && (worker->is_precise() || !served.block_size)) {
      served.block_size = size;
      is_sure = worker->is_precise();
    }
    auto& families = served.families;
    if (std::find(families.begin(), families.end(), worker->spec.family) == families.end()) {
      families.push_back(worker->spec.family);
    }
  }
  return served;
}

bool serve_alike(const Worker& a, const Worker& b) {
  return a.models == b.models && a.max_model_len == b.max_model_len &&
         a.is_precise() == b.is_precise() && a.block_size.tokens() == b.block_size.tokens() &&
         a.spec.family == b.spec.family;
}

std::shared_ptr<const Served> ServedView::read() const {
  const auto snapshot = fleet_.snapshot();
  const auto latest = latest_.read();
  if (latest->revision == snapshot->served_revision) return latest->served;
  auto served = std::make_shared<const Served>(served_by(*snapshot));
  latest_.publish(std::make_shared<const Entry>(Entry{snapshot->served_revision, served}));
  return served;
}

}  // namespace sightline::fleet
