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

// Where the list of workers in force comes from, the weakest first.
enum class Source : std::uint8_t {
  None,   // there is no list
  File,   // flags, environment and configuration file
  Peers,  // pushed to another replica, which told it
  Push,   // pushed here
};
inline constexpr std::array kSources = {Source::None, Source::File, Source::Peers, Source::Push};

// "none", "file", "peers", "push": as in answers and metrics.
std::string_view name_of(Source source);

// Tells one list from another, generation and revision included. Vouches for nothing.
std::uint64_t digest_of(const PushedWorkers& list);

// The workers with the key files of those in `boot` that have the same host and port: a push names
// no files, and a key goes where the file of this machine says, nowhere else.
std::vector<contract::WorkerSpec> with_key_files(std::vector<contract::WorkerSpec> workers,
                                                 const std::vector<contract::WorkerSpec>& boot);

// A pushed list as it came.
struct PushedList {
  PushedWorkers list;
  std::string body;  // which reads to it
  std::uint64_t digest = 0;
};

// The list that counts, and where it is from.
struct InForce {
  Source source = Source::None;
  std::shared_ptr<const PushedList> pushed;   // null: none was
  std::vector<contract::WorkerSpec> workers;  // what the fleet is to have
  std::vector<contract::WorkerSpec> boot;     // those of flags, environment and file
  [[nodiscard]] std::uint64_t generation() const { return pushed ? pushed->list.generation : 0; }
};

// What comes of a boot list: it counts until a list was pushed, afterwards only its keys do.
InForce with_boot(const InForce& now, std::vector<contract::WorkerSpec> boot);
// What comes of a pushed list that judge() has let through.
InForce with_push(const InForce& now, std::shared_ptr<const PushedList> pushed, Source source);

}  // namespace sightline::lists
