// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/audit_surroundings.h"

namespace sightline::cli {
namespace {

// Why blocks that an engine holds may be missing from the index.
std::string_view why_incomplete(const events::Lacks& lacks, const index::PrefixIndex& index) {
  if (index.refused_total() > 0 || lacks.no_room) return "index_full";
  if (lacks.forgotten) return "forgotten";
  if (lacks.unknown_content) return "unknown_content";
  return {};
}

}  // namespace

audit::Surroundings audit_surroundings(subscriber::EventSubscriber& subscriber,
                                       const index::PrefixIndex& index,
                                       const index::RemovalJournal& journal) {
  audit::Surroundings around{.journal = journal, .why_incomplete = {}, .relearn = {}};
  around.why_incomplete = [&subscriber, &index](EngineId engine) -> std::string_view {
    const auto status = subscriber.status(engine);
    return status ? why_incomplete(status->lacks, index) : "forgotten";
  };
  around.relearn = [&subscriber](EngineId engine, audit::Relearn how) {
    subscriber.relearn(engine, how == audit::Relearn::FromReplay);
  };
  return around;
}

}  // namespace sightline::cli
