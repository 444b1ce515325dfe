// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Applies payloads of an engine's event socket, one after the other, to an index.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/contract/identity_key.h"

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/wire/batch_codec.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/support/indexed.h"

namespace sightline::fuzz {
namespace {

constexpr CacheId kEngine{1};
constexpr std::size_t kHandlesMax = 64;

// The most that an engine can hold after these events. Each announcement adds a copy in its cache
// group. Each removal takes one copy, or leaves as many as it states. The content does not matter.
// A removal without a group takes from the announcements without a group. Without these
// announcements it takes from all groups.
class NaiveCache {
 public:
  void apply(const wire::EventBatch& batch) {
    for (const auto& event : batch.events) {
      if (const auto* stored = std::get_if<wire::BlockStored>(&event)) {
        for (const auto hash : stored->hashes) ++copies_[{hash, stored->tier}][stored->group];
      } else if (const auto* removed = std::get_if<wire::BlockRemoved>(&event)) {
        for (std::size_t i = 0; i < removed->hashes.size(); ++i) {
          const auto& left = removed->copies_left;
          take({removed->hashes[i], removed->tier}, removed->group, left.empty() ? 0 : left[i]);
        }
      } else if (std::holds_alternative<wire::AllBlocksCleared>(event)) {
        copies_.clear();
      }
    }
  }

  [[nodiscard]] std::size_t blocks(operations::Tier tier) const {
    return static_cast<std::size_t>(
        std::count_if(copies_.begin(), copies_.end(),
                      [&](const auto& entry) { return entry.first.second == tier; }));
  }

 private:
  using Place = std::pair<wire::EngineHash, std::optional<operations::Tier>>;
  using Group = std::optional<std::int64_t>;

  void take(const Place& place, const Group& of, std::size_t left) {
    const auto entry = copies_.find(place);
    if (entry == copies_.end()) return;
    auto& groups = entry->second;
    const bool is_of_any = !of && !groups.contains(std::nullopt);
    for (auto& [group, copies] : groups) {
      if (is_of_any || group == of) copies = std::max(copies - 1, left);
    }
    std::erase_if(groups, [](const auto& group) { return group.second == 0; });
    if (groups.empty()) copies_.erase(entry);
  }

  std::map<Place, std::map<Group, std::size_t>> copies_;  // without empty groups
};

void check_batch(const wire::EventBatch& batch, std::size_t payload_bytes) {
  SL_CHECK(batch.events.size() <= payload_bytes);
  for (const auto& event : batch.events) {
    const auto* removed = std::get_if<wire::BlockRemoved>(&event);
    SL_CHECK(removed == nullptr || removed->copies_left.empty() ||
             removed->copies_left.size() == removed->hashes.size());
    const auto* stored = std::get_if<wire::BlockStored>(&event);
    if (stored == nullptr) continue;
    SL_CHECK(stored->hashes.size() + stored->tokens.size() <= payload_bytes);
    SL_CHECK(stored->extras.empty() || stored->extras.size() == stored->hashes.size());
  }
}

void check_index(const index::ExactIndex& index, const events::Normaliser& state) {
  const auto held = index.held(kEngine, operations::Tier::Gpu);
  SL_CHECK(index.blocks(kEngine) == held.size());
  SL_CHECK(state.handles() <= kHandlesMax);
  std::size_t others = 0;
  for (const auto tier : {operations::Tier::Cpu, operations::Tier::Storage}) {
    others += index.held(kEngine, tier).size();
  }
  SL_CHECK(index.blocks_total() <= held.size() + others);
  SL_CHECK(index.blocks_total() >= held.size());
}

}  // namespace

void run(ByteView bytes) {
  static const keys::Scheme scheme(contract::development_identity_key());
  Input input(bytes);
  const auto flags = input.byte();
  index::ExactIndex index;
  events::NormaliserOptions options;
  options.id = kEngine;
  options.model = "m";
  options.media_tokens = {151655, 151656};
  options.run_tokens = {151655};
  options.vocabulary_size = (flags & 1U) != 0 ? TokenId{152064} : TokenId{0};
  options.handles_max = kHandlesMax;
  test::IndexedNormaliser state(std::move(options), scheme, index);
  NaiveCache naive;
  while (!input.at_end()) {
    const auto payload = input.sized();
    // A copy of its own size lets a sanitizer detect a read behind its end.
    const Bytes copy(payload.begin(), payload.end());
    const auto batch = wire::decode_batch(copy);
    if (!batch.ok()) {
      SL_CHECK(batch.error().blame == Blame::Worker);
      state.reset();
      naive = NaiveCache();
      SL_CHECK(index.blocks_total() == 0 && state.handles() == 0);
      continue;
    }
    check_batch(*batch, copy.size());
    state.apply(*batch);
    naive.apply(*batch);
    check_index(index, state);
    SL_CHECK(index.blocks(kEngine) <= naive.blocks(operations::Tier::Gpu));
  }
}

}  // namespace sightline::fuzz
