// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"
#include "common/runtime/worker_thread.h"

#include "router/cache/audit/judge.h"
#include "router/cache/audit/waiting_claims.h"

namespace sightline::audit {

// What was expected of an engine for one request and what it reports. Requests whose report says
// nothing about the prefix cache (aborted, failed, prompt_logprobs, several samples, prompts that
// are not known exactly) are not for the audit: a client must not be able to strike an engine.
struct Answered {
  std::string_view request_id;
  std::string_view worker;
  CacheId engine;
  std::uint64_t predicted = 0;          // tokens
  std::optional<std::uint64_t> actual;  // tokens, the engine's cached_tokens; nothing: not told
  bool leaves_zero_out = false;  // the engine means zero where it tells no count, if it tells any
  bool same_prompt = true;       // the engine counts as many prompt tokens as the router
  bool busy = false;             // other requests of ours ran on the engine at the decision
  std::span<const keys::BlockKey> blocks;  // those expected to be reused
  std::uint64_t removals = 0;              // the journal's position before the index was asked
  Instant decided{};                       // when the index was asked
};

// How an engine's predictions have turned out.
struct Tally {
  std::uint64_t equal = 0;
  std::uint64_t over = 0;              // less was reused than expected
  std::uint64_t under = 0;             // more was reused than expected
  std::uint64_t not_reused = 0;        // of over: the engine holds more than it reuses
  std::uint64_t upper_bound = 0;       // of over: its claims are an upper bound by its nature
  std::uint64_t not_judged = 0;        // of over: the router was behind with its announcements
  std::uint64_t unexplained = 0;       // of over: the index was wrong
  std::uint64_t overfull = 0;          // times that more blocks were claimed than it has
  std::uint64_t relearned = 0;         // times its blocks were forgotten for one of the last two
  std::uint64_t postponed = 0;         // times they were not, as they had been too lately
  std::uint64_t untold = 0;            // answers that cannot be compared: the engine told no count
  std::string_view relearned_because;  // of the last time: "unexplained", "overfull"; empty: none
};

// What the router knows of an engine's announcements.
struct Heard {
  bool is_sound = false;             // connected, nothing is missing
  bool is_upper_bound = false;       // what is claimed of it is one, by its nature
  std::optional<Instant> caught_up;  // all that was announced until then is applied
};

// An engine of which the index claims more blocks than it has room for.
struct Overfull {
  CacheId engine;
  std::string worker;
  std::uint64_t claimed = 0;  // blocks on its GPU
  std::uint64_t room = 0;     // blocks, as it tells itself
};

// What the audit needs of the rest of the router.
struct Surroundings {
  const index::RemovalJournal& journal;
  // Why the index may lack blocks of an engine, as the label of a metric; empty: it should not.
  std::function<std::string_view(CacheId)> why_incomplete;
  // Nothing: its events are not followed.
  std::function<std::optional<Heard>(CacheId)> heard;
  // Have it found out, soon after the return, how far an engine's announcements are applied.
  std::function<void(CacheId)> look;
  // All such engines, but for those whose claims are an upper bound.
  std::function<std::vector<Overfull>()> overfull;
  // Forget the engine's blocks and learn them anew: from a replay of its events, or from those
  // that are still to come.
  std::function<void(CacheId, Relearn)> relearn;
};

// Compares predictions with the engines' own counts; every difference is counted by cause, and an
// engine whose blocks are claimed wrongly twice in a row, or of which more are claimed than it has,
// has them forgotten and learned anew. An engine is judged by what it announced, all of it applied:
// where that is not known in time, a claim is not judged.
//
// Thread safety: all methods from any thread. The functions of Surroundings run on the audit's
// thread or the caller's.
class Audit {
 public:
  struct Options {
    std::chrono::milliseconds announcement_delay = kAnnouncementDelay;
    // Between looks at an engine's announcements, and how long after the answer to give up.
    std::chrono::milliseconds look_again_after{100};
    std::chrono::milliseconds judged_within{10'000};
    // Between looks for engines of which too much is claimed; two in a row have to find one.
    std::chrono::milliseconds overfull_interval{2'000};
    ClaimLimits claims = {};
  };

  // Journal, metrics and clock outlive it.
  Audit(Options options, Surroundings around, runtime::Metrics& metrics, const Clock& clock);
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;
  ~Audit();

  // The engine's predictions count from now on, until it leaves. Others are ignored: their answers
  // and verdicts come after their engine is gone.
  void follow(CacheId engine);
  void forget(CacheId engine);
  void compare(const Answered& answered);
  [[nodiscard]] Tally tally(CacheId engine) const;

 private:
  struct Followed {
    Tally tally;
    bool tells = false;  // it has told its cached tokens
  };

  void judge_until_stopped(const std::stop_token& stop);
  void visit(CacheId engine);
  void judge(const WaitingClaim& waiting);
  void count_unjudged(const WaitingClaim& waiting, OverCause cause);
  void look_for_overfull();
  void learn_anew(CacheId engine, const std::string& worker, Relearn how, std::string_view because);
  // Notes the engine's count and returns it. Nothing: it told none, or has left.
  std::optional<std::uint64_t> count(const Answered& answered, Instant now);
  void wait_to_be_judged(const Answered& answered, std::uint64_t actual, Instant now);
  void count_miss(std::string_view worker, std::string_view result, std::string_view cause);
  [[nodiscard]] std::string_view cause_of_under(const Answered& answered) const;

  const Options options_;
  const Surroundings around_;
  runtime::Metrics& metrics_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Judge judge_ SL_GUARDED_BY(mutex_);
  std::unordered_map<CacheId, Followed> followed_ SL_GUARDED_BY(mutex_);
  WaitingClaims waiting_;
  std::unordered_map<CacheId, std::uint32_t> overfull_looks_;  // in a row; the audit's thread
  std::optional<WorkerThread> thread_;                         // ends before all of the above
};

}  // namespace sightline::audit
