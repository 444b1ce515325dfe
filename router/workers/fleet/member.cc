// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/member.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sightline::fleet {

namespace {

// The failed probes in a row after which a worker is not yet suspect. One more makes it suspect,
// and a further one makes it down. A timeout is some proof, because a whole probe's time has
// passed. A quick failure may be an accident.
constexpr std::uint32_t kSilentProbesMax = 0;
constexpr std::uint32_t kBrokenProbesMax = 1;

Duration backoff(const FleetOptions& options, std::uint32_t failures) {
  Duration wait = options.suspect_backoff;
  for (std::uint32_t i = 1; i < failures && wait < options.suspect_backoff_max; ++i) wait *= 2;
  return std::min(wait, options.suspect_backoff_max);
}

bool is_out(const FleetMember& member) { return member.seen.is_silent || member.seen.is_suspect; }

void suspect(FleetMember& member, Instant until) {
  member.suspect_until = until;
  member.seen.is_suspect = true;
}

void end_suspicion(FleetMember& member) {
  member.suspect_until.reset();
  member.seen.is_suspect = false;
}

bool same_discovery(const Discovery& a, const Discovery& b) {
  return a.ranks == b.ranks && a.rank_conflict == b.rank_conflict;
}

}  // namespace

BlockSizeEvidence evidence_of(const FleetMember& member) {
  return {.is_sound = member.seen.is_alive && conflict_of(member.view, member.seen).empty(),
          .has_feed = member.view.first_feed() != nullptr,
          .size = member.view.block_size};
}

FleetMember new_member(const contract::WorkerSpec& spec, Instant now, LoadBook& book) {
  FleetMember member;
  member.next_probe = now;
  member.moved_at = now;
  member.view = view_of(spec);
  for (Rank& rank : member.view.ranks) rank.load = book.open({spec.name, rank.number});
  return member;
}

bool note_failed_probe(FleetMember& member, const Probe& probe, Sighting moment,
                       const FleetOptions& options) {
  const Error& error = probe.health.error();
  Observations& seen = member.seen;
  // The router has no descriptors or ports left, for example. This says nothing about the worker.
  if (error.blame == Blame::Internal) {
    if (!seen.was_alive) seen.failure = error.message;
    member.next_probe = moment.now + options.probe_interval;
    return false;
  }
  // A busy worker may answer /health late. Tokens and events prove that it lives. But a refused
  // connection and a 5xx are its own words.
  if (moment.shows_life && seen.is_alive && !probe.refused && !probe.is_unwell) {
    note_life(member, moment.now, options);
    return false;
  }
  const bool is_timeout = error.code == ErrorCode::Timeout;
  ++member.failed_probes;
  seen.failure = error.message;
  member.next_probe =
      // A doubtful worker is probed again sooner than usual.
      moment.now + std::min(options.probe_interval, backoff(options, member.failed_probes));
  if (!seen.is_alive) return false;
  // Nothing listens: the process is gone, and its cache with it.
  if (probe.refused) {
    seen.is_alive = seen.is_silent = seen.is_slow = false;
    end_suspicion(member);
    member.told_otherwise.reset();
    return true;
  }
  const std::uint32_t allowed = is_timeout ? kSilentProbesMax : kBrokenProbesMax;
  if (member.failed_probes <= allowed) return false;
  // Slow means by timeouts alone. Another failure in between ends that.
  seen.is_slow = is_timeout && (seen.is_slow || !is_out(member));
  if (member.failed_probes > allowed + 1) {
    seen.is_silent = true;
    end_suspicion(member);
  } else {
    suspect(member, member.next_probe);
  }
  return false;
}

void note_life(FleetMember& member, Instant now, const FleetOptions& options) {
  member.failed_probes = 0;
  Observations& seen = member.seen;
  seen.is_alive = seen.was_alive = true;
  seen.is_silent = false;
  // A good probe during the back-off does not end it.
  if (member.suspect_until && now >= *member.suspect_until) end_suspicion(member);
  seen.is_slow = seen.is_slow && seen.is_suspect;
  member.next_probe = member.suspect_until.value_or(now + options.probe_interval);
}

RequestBlame note_failed_request(FleetMember& member, const Error& error, Sighting moment,
                                 const FleetOptions& options) {
  Observations& seen = member.seen;
  const bool is_timeout = error.code == ErrorCode::Timeout;
  // Requests that fail together count as one failure.
  const bool is_known = is_out(member) && (!seen.is_slow || is_timeout);
  if (!seen.is_alive || is_known || error.code == ErrorCode::TooLarge) {
    return RequestBlame::None;
  }
  // An engine under load answers late, but sends tokens to others.
  if (is_timeout && moment.shows_life) return RequestBlame::None;
  ++member.failed_requests;
  // A timeout and a 503 prove more than a broken connection, which may be an accident.
  const bool is_proof = is_timeout || error.code == ErrorCode::Overloaded;
  if (!is_proof && member.failed_requests == 1) {
    member.next_probe = moment.now;
    return RequestBlame::Doubt;
  }
  member.failed_requests = std::max(member.failed_requests, 2U);
  seen.failure = "requests fail: " + error.message;
  seen.is_slow = is_timeout;
  suspect(member, moment.now + backoff(options, member.failed_requests - 1));
  member.next_probe = *member.suspect_until;
  return RequestBlame::Suspect;
}

std::optional<Discovery> news_of(FleetMember& member, const Probe& probe, Instant now,
                                 const FleetOptions& options) {
  const Worker& view = member.view;
  const bool has_feed = view.first_feed() != nullptr;
  const bool is_open = !has_feed && member.seen.rank_conflict.empty();
  if (!is_open && !tells_endpoints(probe)) return std::nullopt;
  // After a worker has reported its events, a 404 says nothing about them.
  const bool was_told = has_feed && member.view.spec.events.empty();
  if (was_told && !probe.sources.ok()) return std::nullopt;
  Discovery found = discover(member.view.spec, probe);
  const bool is_same =
      found_ranks(view) == found.ranks && member.seen.rank_conflict == found.rank_conflict;
  // The change would drop blocks, so a second probe must report the same.
  if (!is_same && has_feed &&
      (!member.told_otherwise || !same_discovery(*member.told_otherwise, found))) {
    member.told_otherwise = std::move(found);
    member.next_probe = std::min(member.next_probe, now + options.suspect_backoff);
    return std::nullopt;
  }
  member.told_otherwise.reset();
  return found;
}

void note_refused_calls(FleetMember& member, const Probe& probe) {
  const auto refusal = [](const auto& part) -> const Error* {
    return !part.ok() && part.error().code == ErrorCode::Unauthorized ? &part.error() : nullptr;
  };
  std::string& text = member.seen.refused_calls;
  const Error* refused = refusal(probe.models);
  if (refused == nullptr) refused = refusal(probe.sources);
  if (refused == nullptr) refused = refusal(probe.load);
  if (refused != nullptr) {
    const std::string& file = member.view.spec.api_key_file;
    text = refused->message + ": ";
    text += file.empty() ? "give this worker api_key_file=FILE with the engine's API key"
                         : "the key in api_key_file=" + file + " is not the engine's";
  } else if (probe.models.ok()) {
    text.clear();
  }
  // Without a usable key the refusal is no surprise: the cause is the file.
  if (!probe.key_problem.empty()) text = probe.key_problem;
}

void note_generated(FleetMember& member, const ServerLoad& load) {
  const double before = std::exchange(member.generated_tokens, load.generated_tokens);
  member.has_generated = member.has_generated || before != load.generated_tokens;
}

std::uint64_t unannounced_blocks(const FleetMember& member) {
  return member.view.computed->total() - member.announced_at;
}

namespace {

std::string seconds_text(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  std::string text = std::to_string(seconds / 1000);
  if (seconds % 1000 != 0) text += "." + std::to_string(seconds % 1000 + 1000).substr(1);
  return text + " s";
}

void note_tokens(FleetMember& member, Instant now, const FleetOptions& options) {
  std::uint64_t held = 0;
  for (const Rank& rank : member.view.ranks) held += rank.load->own(now).in_flight;
  const bool has_generated = std::exchange(member.has_generated, false);
  // A process that ended is not wedged, and the next one begins again.
  const bool has_moved = member.view.life->take_moved() || has_generated || !member.seen.is_alive;
  if (has_moved || options.wedge_timeout == Duration::zero()) member.wedged_until.reset();
  if (has_moved || held == 0) member.moved_at = now;
  const Duration still = now - member.moved_at;
  if (options.wedge_timeout != Duration::zero() && still >= options.wedge_timeout) {
    member.wedged_until = now + options.wedge_timeout;
  }
  if (member.wedged_until && now >= *member.wedged_until) member.wedged_until.reset();
  member.seen.wedged = !member.wedged_until
                           ? ""
                           : "it has requests in flight and generated no token for " +
                                 seconds_text(options.wedge_timeout) + " (fleet.wedge_timeout)";
}

void note_announcements(FleetMember& member, Instant now) {
  bool has_announced = false;
  bool is_followed = false;
  for (const Rank& rank : member.view.ranks) {
    if (!rank.feed) continue;
    has_announced = has_announced || rank.feed->block_size.tokens > 0;
    is_followed = is_followed || rank.feed->unverified.empty();
  }
  // Only blocks that it computes while its events arrive must be announced.
  if (has_announced || !is_followed) member.announced_at = member.view.computed->total();
  if (unannounced_blocks(member) < kUnannouncedBlocksMin) {
    member.unannounced_since.reset();
  } else if (!member.unannounced_since) {
    member.unannounced_since = now;
  }
  const bool is_silent =
      member.unannounced_since && now - *member.unannounced_since >= kAnnounceTime;
  member.seen.unannounced =
      is_silent
          ? "it computed blocks, but its KV events announced none: start the engine with prefix "
            "caching, and check that these events come from this engine"
          : "";
}

}  // namespace

bool note_work(FleetMember& member, Instant now, const FleetOptions& options) {
  const auto before = std::pair(member.seen.wedged, member.seen.unannounced);
  note_tokens(member, now, options);
  note_announcements(member, now);
  return before != std::pair(member.seen.wedged, member.seen.unannounced);
}

bool SlowShare::count(FleetMember& member) {
  const Observations& seen = member.seen;
  const bool is_routed =
      seen.is_alive && !member.view.spec.drain && (!is_out(member) || seen.is_slow);
  const bool is_slow = is_routed && is_out(member);
  if (is_routed == member.is_counted_routed && is_slow == member.is_counted_slow) return false;
  leave(member);
  routed += is_routed ? 1 : 0;
  slow += is_slow ? 1 : 0;
  member.is_counted_routed = is_routed;
  member.is_counted_slow = is_slow;
  return true;
}

void SlowShare::leave(const FleetMember& member) {
  routed -= member.is_counted_routed ? 1 : 0;
  slow -= member.is_counted_slow ? 1 : 0;
}

}  // namespace sightline::fleet
