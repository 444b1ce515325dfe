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

namespace {

// The longest prompt of the workers that may take requests. Without any, of the suspect ones,
// because requests go to them then.
std::uint32_t longest_prompt(const FleetSnapshot& fleet) {
  for (const bool as_last_resort : {false, true}) {
    std::uint32_t longest = 0;
    bool is_told = true;
    bool is_any = false;
    for (const auto& worker : fleet.workers) {
      const bool counts =
          as_last_resort ? worker->state == WorkerState::Suspect : worker->is_routable();
      if (!counts) continue;
      is_any = true;
      is_told = is_told && worker->max_model_len > 0;
      longest = std::max(longest, worker->max_model_len);
    }
    // One worker without a reported limit may take any prompt.
    if (is_any) return is_told ? longest : 0;
  }
  return 0;
}

}  // namespace

Served served_by(const FleetSnapshot& fleet) {
  Served served;
  served.prompt_tokens_max = longest_prompt(fleet);
  bool is_sure = false;  // of the block size
  for (const auto& worker : fleet.workers) {
    for (const ServedModel& model : worker->models) {
      const bool is_adapter = fleet.adapter_names->contains(model.id);
      served.models.add(model.id, is_adapter ? model.parent : "");
    }
    const std::uint32_t size = worker->block_size.tokens();
    // Only workers with one block size are precise, the fleet excludes the others.
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
  const auto counts = [](const Worker& worker) {
    return std::pair(worker.is_routable(), worker.state == WorkerState::Suspect);
  };
  return a.models == b.models && a.max_model_len == b.max_model_len && counts(a) == counts(b) &&
         a.is_precise() == b.is_precise() && a.block_size.tokens() == b.block_size.tokens() &&
         a.spec.family == b.spec.family;
}

std::shared_ptr<const Served> ServedView::read() const {
  const auto snapshot = fleet_.snapshot();
  const auto latest = latest_.read();
  // Most reads find the value of the present revision.
  if (latest->revision == snapshot->served_revision) return latest->served;
  auto served = std::make_shared<const Served>(served_by(*snapshot));
  latest_.publish(std::make_shared<const Entry>(Entry{snapshot->served_revision, served}));
  return served;
}

}  // namespace sightline::fleet
