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

// One worker as the fleet keeps it, and what its probes and requests change about it.
//
//   seen                                       becomes             its blocks
//   connection refused: nothing listens        down                given up, at once
//   no answer in time, no sign of life         suspect, then down  kept
//   no answer in time, but answers or events   nothing changes     kept
//     of it came meanwhile
//   connection broken off, host not reached    looked at again;    kept
//     (unless answers or events came)          suspect, then down
//   /health answers 5xx                        looked at again;    kept
//                                              suspect, then down
//   any other answer                           alive               kept
//   an error of the router's own               nothing changes     kept
//   the probe tells other event endpoints or   asked again; taken  kept until it is told twice
//     ranks than are known                     over when told twice
//   a request: no answer in time               suspect, unless answers or events came lately
//   a request: 503                             suspect
//   a request: broken off, garbage, 502, 504   looked at again at once; suspect when the next
//                                              request fails before any succeeds
//   a request: answer beyond a limit           nothing changes: who asked for it asked too much
//   requests, and no token to anybody for      suspect            kept
//     wedge_timeout
//   it says that it sleeps                     draining           kept
//
// suspect: asked only where there is no other, until a probe after the back-off succeeds. A worker
// that is suspect or down by timeouts alone stays routed while more than half of the workers are
// so: then it is the load or the router, not they. That kept blocks are true is the event stream's
// to say: while its connection stands they are.
namespace sightline::fleet {

struct FleetOptions {
  Duration probe_interval = std::chrono::seconds(5);
  Duration suspect_backoff = std::chrono::milliseconds(500);  // after the first failure
  Duration suspect_backoff_max = std::chrono::seconds(30);    // it doubles up to this
  // So long may a worker hold requests and give no token to anybody; 0: for ever.
  Duration wedge_timeout = std::chrono::seconds(60);
  // Names that the operator gave to the base model.
  std::vector<std::string> base_names = {};
  LoadBook::Options load = {};
};

// A worker that computed so many whole blocks, and announced none within the time after that, is
// said to announce nothing.
inline constexpr std::uint64_t kUnannouncedBlocksMin = 4;
inline constexpr Duration kAnnounceTime = std::chrono::seconds(10);

// All of a worker that the states of the others depend on.
struct BlockSizeEvidence {
  bool is_sound = false;  // alive, and nothing it says contradicts itself or the operator
  bool has_feed = false;
  BlockSize size;

  bool operator==(const BlockSizeEvidence&) const = default;
};

struct Member {
  Worker view;
  std::shared_ptr<const Worker> published;
  Observations seen;
  BlockSizeEvidence evidence;         // as when it was last compared with the others'
  Ballot ballot;                      // as it is counted among the others'
  bool is_counted_routed = false;     // in the fleet's SlowShare
  bool is_counted_slow = false;       // likewise
  bool is_probed = false;             // a probe is under way
  Instant probe_began{};              // the last one
  std::uint32_t failed_probes = 0;    // in a row
  std::uint32_t failed_requests = 0;  // in a row, those while suspect not counted
  std::optional<Instant> suspect_until;
  std::optional<Discovery> told_otherwise;  // by the last probe, not believed yet
  Instant next_probe;
  // Its work, see note_work().
  Instant moved_at{};           // gave a token last, or held no request
  double generated_tokens = 0;  // as it told last
  bool has_generated = false;   // it told more since the last look
  std::optional<Instant> wedged_until;
  std::uint64_t announced_at = 0;            // its computed blocks when it last announced any
  std::optional<Instant> unannounced_since;  // that there are kUnannouncedBlocksMin more
};

// When something was seen of a worker, and whether bytes of its answers or events came meanwhile.
struct Sighting {
  Instant now;
  bool shows_life = false;
};

Member new_member(const contract::WorkerSpec& spec, Instant now, LoadBook& book);
BlockSizeEvidence evidence_of(const Member& member);

// True: its feeds are to be given up.
bool note_failed_probe(Member& member, const Probe& probe, Sighting moment,
                       const FleetOptions& options);
// The worker answered. What it tells of itself is the caller's.
void note_life(Member& member, Instant now, const FleetOptions& options);

// What the request's failure says of the worker.
enum class RequestBlame : std::uint8_t {
  None,     // nothing, or nothing new
  Doubt,    // one failure: the next probe is due at once
  Suspect,  // the worker is suspect
};
RequestBlame note_failed_request(Member& member, const Error& error, Sighting moment,
                                 const FleetOptions& options);

// What the probe tells of event endpoints and ranks, where that is to be taken over now.
std::optional<Discovery> news_of(Member& member, const Probe& probe, Instant now,
                                 const FleetOptions& options);

// A look at what the worker does with the requests that this router sent it: whether it gives
// tokens to anybody, as bytes of its answers or its own count tell, and whether it announces what
// it computes. A worker that is wedged stays so until it gives a token, or wedge_timeout after it
// held a request last. True: what is seen of it changed. To be called about once a second.
bool note_work(Member& member, Instant now, const FleetOptions& options);
// Takes over how many tokens it generated, as it tells.
void note_generated(Member& member, const ServerLoad& load);
// Whole blocks that it computed since it announced any.
std::uint64_t unannounced_blocks(const Member& member);

// Which of the worker's answers refuse the router's own calls, and what to do about it. Pure.
void note_refused_calls(Member& member, const Probe& probe);

// How many workers are out by timeouts alone, of all that are routed or would be but for these.
struct SlowShare {
  std::int64_t routed = 0;
  std::int64_t slow = 0;

  // Counts the member as it is in place of what it was; true: that was something else.
  bool count(Member& member);
  void leave(const Member& member);
  // Too many to be left out.
  [[nodiscard]] bool is_large() const { return 2 * slow > routed; }
};

}  // namespace sightline::fleet
