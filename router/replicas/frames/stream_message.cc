// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/frames/stream_message.h"

namespace sightline::frames {

void Checksum::add(const operations::Operation& operation) {
  // The kind, the flag of the parent and the number of keys are folded too. Different operations
  // then never fold the same words.
  fold(operation.index());
  const std::vector<keys::BlockKey>* keys = nullptr;
  if (const auto* store = std::get_if<operations::Store>(&operation)) {
    fold(static_cast<std::uint64_t>(store->tier));
    fold(store->parent ? 1 : 0);
    fold(store->parent.value_or(keys::BlockKey{}).value);
    keys = &store->keys;
  } else if (const auto* remove = std::get_if<operations::Remove>(&operation)) {
    fold(static_cast<std::uint64_t>(remove->tier));
    keys = &remove->keys;
  }
  if (keys == nullptr) return;
  fold(keys->size());
  for (const auto key : *keys) fold(key.value);
}

}  // namespace sightline::frames
