// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/contract/worker_spec.h"

#include "router/workers/lists/pushed.h"

namespace sightline::lists {

// Where the worker list in force comes from, the weakest source first.
enum class ListSource : std::uint8_t {
  // There is no list.
  None,
  // Flags, environment and configuration file.
  File,
  // Pushed to another replica, which sent it.
  Peers,
  // Pushed here.
  Push,
};
inline constexpr std::array kSources = {ListSource::None, ListSource::File, ListSource::Peers,
                                        ListSource::Push};

// The source as responses and metrics name it: `none`, `file`, `peers` or `push`.
std::string_view name_of(ListSource source);

// Differs between different lists, also by generation and revision. It detects differences, not
// forgeries.
std::uint64_t digest_of(const PushedWorkers& list);

// Returns the workers with their key files. A worker gets the file of the worker in `boot` with the
// same host and port. A push names no files. So a key only goes to the address that this machine's
// own configuration gives.
std::vector<contract::WorkerSpec> with_key_files(std::vector<contract::WorkerSpec> workers,
                                                 const std::vector<contract::WorkerSpec>& boot);

// A pushed list as it arrived.
struct PushedList {
  PushedWorkers list;
  // The text that became `list`.
  std::string body;
  // digest_of() the list.
  std::uint64_t digest = 0;
};

// The list that counts, and where it comes from.
struct InForce {
  ListSource source = ListSource::None;
  // Null: no list was pushed.
  std::shared_ptr<const PushedList> pushed;
  // The workers that the fleet should have.
  std::vector<contract::WorkerSpec> workers;
  // The workers of flags, environment and file.
  std::vector<contract::WorkerSpec> boot;
  // 0 if no list was pushed.
  [[nodiscard]] std::uint64_t generation() const { return pushed ? pushed->list.generation : 0; }
};

// Returns the list in force after a new boot list. The boot list counts until a list is pushed.
// From then on only its key files count.
InForce with_boot(const InForce& now, std::vector<contract::WorkerSpec> boot);
// Returns the list in force after a pushed list that judge() has accepted.
InForce with_push(const InForce& now, std::shared_ptr<const PushedList> pushed, ListSource source);

}  // namespace sightline::lists
