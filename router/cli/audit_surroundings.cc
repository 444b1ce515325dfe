// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/audit_surroundings.h"

namespace sightline::cli {
namespace {

// Why blocks that an engine holds may be missing from the index.
std::string_view why_incomplete(const events::EngineStatus& status,
                                const index::PrefixIndex& index) {
  const events::NormaliserStatistics& n = status.normaliser;
  const events::StreamStatistics& stream = status.stream;
  if (index.refused_total() > 0 || n.handles_refused > 0) return "index_full";
  if (stream.drops > 0 || stream.late_joins > 0 || stream.relearns > 0 || n.unknown_parent > 0) {
    return "forgotten";
  }
  if (n.unknown_content > 0 || n.conflicts > 0) return "unknown_content";
  return {};
}

}  // namespace

audit::Surroundings audit_surroundings(subscriber::EventSubscriber& subscriber,
                                       const index::PrefixIndex& index,
                                       const index::RemovalJournal& journal) {
  audit::Surroundings around{.journal = journal, .why_incomplete = {}, .relearn = {}};
  around.why_incomplete = [&subscriber, &index](EngineId engine) -> std::string_view {
    const auto status = subscriber.status(engine);
    return status ? why_incomplete(*status, index) : "forgotten";
  };
  around.relearn = [&subscriber](EngineId engine, audit::Relearn how) {
    subscriber.relearn(engine, how == audit::Relearn::FromReplay);
  };
  return around;
}

}  // namespace sightline::cli
