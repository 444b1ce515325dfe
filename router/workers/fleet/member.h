// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/contract/worker_spec.h"

#include "router/workers/fleet/block_size.h"
#include "router/workers/fleet/discovery.h"
#include "router/workers/fleet/load_book.h"
#include "router/workers/fleet/name_meanings.h"
#include "router/workers/fleet/worker.h"

// One worker as the fleet keeps it, and how probes and requests change it.
//
// | seen | the worker becomes | its blocks |
// | connection refused: nothing listens | down | dropped immediately |
// | no answer in time, no sign of life | suspect, then down | kept |
// | no answer in time, but its answers or events arrived | as before | kept |
// | connection broken off, host not reached (1) | probed again, suspect, then down | kept |
// | /health answers 5xx | probed again, suspect, then down | kept |
// | any other answer | alive | kept |
// | an error of the router itself | as before | kept |
// | the probe reports other event endpoints or ranks (2) | as before, probed again | kept |
// | a request: no answer in time (3) | suspect | kept |
// | a request: 503 | suspect | kept |
// | a request: broken off, garbage, 502, 504 (4) | probed immediately | kept |
// | a request: answer beyond a limit of the router (5) | as before | kept |
// | it has requests, and no token came for wedge_timeout | suspect | kept |
// | it reports that it sleeps | draining | kept |
//
// (1) As before if its answers or events arrived.
// (2) If the next probe reports the same, the change applies and the blocks are dropped.
// (3) As before if its answers or events arrived lately.
// (4) Suspect when the next request fails before any succeeds.
// (5) The request was for too much. The worker is not at fault.
//
// A suspect worker gets requests only if there is no other, until a probe after the back-off
// succeeds. Workers that are suspect or down by timeouts alone stay routed while they are more than
// half of the workers. Then the load or the router is the cause.
// Only the event stream decides whether kept blocks are true. They are true while its connection
// lasts.
namespace sightline::fleet {

// Times and settings of the fleet.
struct FleetOptions {
  Duration probe_interval = std::chrono::seconds(5);
  Duration suspect_backoff = std::chrono::milliseconds(500);  // after the first failure
  Duration suspect_backoff_max = std::chrono::seconds(30);    // the back-off doubles up to this
  // A worker that holds requests and sends no token for this time is suspect. 0: never. The setting
  // is `fleet.wedge_timeout`.
  Duration wedge_timeout = std::chrono::seconds(60);
  // Names that the operator gave to the base model (`model.served_names`).
  std::vector<std::string> base_names = {};
  LoadBook::Options load = {};
};

// A worker that computed this many whole blocks, and whose events announced no block within this
// time afterwards, counts as one that announces nothing.
inline constexpr std::uint64_t kUnannouncedBlocksMin = 4;
inline constexpr Duration kAnnounceTime = std::chrono::seconds(10);

// All properties of a worker on which the states of the others depend.
struct BlockSizeEvidence {
  // It is alive, and contradicts neither itself nor the operator.
  bool is_sound = false;
  bool has_feed = false;
  BlockSize size;

  bool operator==(const BlockSizeEvidence&) const = default;
};

// A worker with its history. Only the fleet changes it, under its lock.
struct FleetMember {
  // The worker as the next snapshot shows it, if it has changed.
  Worker view;
  // The worker in the present snapshot. Null: there is no snapshot with it.
  std::shared_ptr<const Worker> published;
  Observations seen;
  BlockSizeEvidence evidence;         // as last compared.
  Ballot ballot;                      // as last counted.
  bool is_counted_routed = false;     // in the fleet's SlowShare.
  bool is_counted_slow = false;       // in the fleet's SlowShare.
  bool is_probed = false;             // a probe is under way
  Instant probe_began{};              // of the last probe
  std::uint32_t failed_probes = 0;    // in a row
  std::uint32_t failed_requests = 0;  // in a row, without those while suspect
  std::optional<Instant> suspect_until;
  std::optional<Discovery> told_otherwise;  // by the last probe, not in force yet
  Instant next_probe;
  // Its progress, see note_work().
  Instant moved_at{};           // it last sent a token, or held no request
  double generated_tokens = 0;  // as it last reported
  bool has_generated = false;   // it reported more since the last look
  std::optional<Instant> wedged_until;
  // Its computed blocks when it last announced any.
  std::uint64_t announced_at = 0;
  // Since when there are kUnannouncedBlocksMin more.
  std::optional<Instant> unannounced_since;
};

// When a worker was probed or used, and whether bytes of its answers or events arrived meanwhile.
struct Sighting {
  Instant now;
  bool shows_life = false;
};

// Returns a worker without history. Its first probe is due at `now`.
FleetMember new_member(const contract::WorkerSpec& spec, Instant now, LoadBook& book);
BlockSizeEvidence evidence_of(const FleetMember& member);

// Applies a failed probe. Returns whether the worker's feeds must be dropped.
bool note_failed_probe(FleetMember& member, const Probe& probe, Sighting moment,
                       const FleetOptions& options);
// The worker answered. The caller applies what it reports.
void note_life(FleetMember& member, Instant now, const FleetOptions& options);

// What a failed request proves about the worker.
enum class RequestBlame : std::uint8_t {
  None,     // nothing, or nothing new
  Doubt,    // one failure, the next probe is due immediately
  Suspect,  // the worker is suspect
};
// Applies a failed request.
RequestBlame note_failed_request(FleetMember& member, const Error& error, Sighting moment,
                                 const FleetOptions& options);

// Returns the event endpoints and ranks that the probe reports, if they apply now.
std::optional<Discovery> news_of(FleetMember& member, const Probe& probe, Instant now,
                                 const FleetOptions& options);

// Checks how the worker progresses with this router's requests. Bytes of its answers or its own
// count show whether it sends tokens. Its events show whether it announces the blocks that it
// computes.
// A wedged worker stays wedged until it sends a token, or until wedge_timeout after it last held a
// request. Returns whether the observations changed. Call it about once a second.
bool note_work(FleetMember& member, Instant now, const FleetOptions& options);
// Applies the worker's own count of generated tokens.
void note_generated(FleetMember& member, const ServerLoad& load);
// Whole blocks that it computed since it last announced any.
std::uint64_t unannounced_blocks(const FleetMember& member);

// Sets which of the router's own calls the worker refuses, and the remedy. Pure.
void note_refused_calls(FleetMember& member, const Probe& probe);

// How many workers are left out by timeouts alone, among all that are routed or would be without
// them.
struct SlowShare {
  std::int64_t routed = 0;
  std::int64_t slow = 0;

  // Counts the member as it is now, instead of as it was. Returns whether that changed.
  bool count(FleetMember& member);
  // The member does not count any more.
  void leave(const FleetMember& member);
  // Too many are slow to leave them out.
  [[nodiscard]] bool is_large() const { return 2 * slow > routed; }
};

}  // namespace sightline::fleet
