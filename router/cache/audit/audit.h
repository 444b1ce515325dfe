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
#include "router/cache/audit/room_watch.h"
#include "router/cache/audit/waiting_claims.h"
#include "router/cache/index/prefix_index.h"
#include "router/cache/operations/facts.h"

namespace sightline::audit {

// What was expected of a rank for one request and what it reports. Requests whose report says
// nothing about the prefix cache (aborted, failed, prompt_logprobs, several samples, prompts that
// are not known exactly) are not for the audit: a client must not be able to strike a rank.
struct Answered {
  std::string_view request_id;
  std::string_view worker;
  CacheId cache;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t best = 0;               // tokens that the rank with the most of them holds
  std::uint64_t predicted = 0;          // tokens
  std::uint64_t predicted_image = 0;    // of these, tokens of images
  std::optional<std::uint64_t> actual;  // tokens, the rank's cached_tokens; nothing: not told
  bool leaves_zero_out = false;  // the rank means zero where it tells no count, if it tells any
  bool same_prompt = true;       // the rank counts as many prompt tokens as the router
  bool busy = false;             // other requests of ours ran on the rank at the decision
  std::span<const keys::BlockKey> blocks;  // those expected to be reused
  std::uint64_t removals = 0;              // the journal's position before the index was asked
  Instant decided{};                       // when the index was asked
};

// How a rank's predictions have turned out.
struct Tally {
  std::uint64_t equal = 0;
  std::uint64_t over = 0;              // less was reused than expected
  std::uint64_t under = 0;             // more was reused than expected
  std::uint64_t not_reused = 0;        // of over: the rank holds more than it reuses
  std::uint64_t upper_bound = 0;       // of over: its claims are an upper bound by its nature
  std::uint64_t not_judged = 0;        // of over: the router was behind with its announcements
  std::uint64_t unexplained = 0;       // of over: the index was wrong
  std::uint64_t overfull = 0;          // times that more blocks were claimed than it has
  std::uint64_t relearned = 0;         // times its blocks were forgotten for one of the last two
  std::uint64_t postponed = 0;         // times they were not, as they had been too lately
  std::uint64_t untold = 0;            // answers that cannot be compared: the rank told no count
  std::string_view relearned_because;  // of the last time: "unexplained", "overfull"; empty: none
};

// What the audit needs of the rest of the router.
struct Dependencies {
  const index::RemovalJournal& journal;
  const index::IndexStatistics& index;
  // What a cache's events tell of it. Nothing: they are not followed.
  std::function<std::optional<operations::CacheFacts>(CacheId)> facts;
  // Have it found out, soon after the return, how far a rank's announcements are applied.
  std::function<void(CacheId)> look;
  // Of each cache that is followed.
  std::function<std::vector<CacheRoom>()> rooms;
  // Sees to what found no room in the index; called with the above every overfull_interval.
  std::function<void(const std::vector<CacheRoom>&)> watch_rooms = {};
  // Forget the rank's blocks and learn them anew: from a replay of its events, or from those
  // that are still to come.
  std::function<void(CacheId, Relearn)> relearn;
};

// Compares predictions with the ranks' own counts; every difference is counted by cause, and an
// rank whose blocks are claimed wrongly twice in a row, or of which more are claimed than it has,
// has them forgotten and learned anew. A rank is judged by what it announced, all of it applied:
// where that is not known in time, a claim is not judged.
//
// Thread safety: all methods from any thread. The functions of Dependencies run on the audit's
// thread or the caller's.
class Audit {
 public:
  struct Options {
    std::chrono::milliseconds announcement_delay = kAnnouncementDelay;
    // Between looks at a rank's announcements, and how long after the answer to give up.
    std::chrono::milliseconds look_again_after{100};
    std::chrono::milliseconds judged_within{10'000};
    // Between looks for ranks of which too much is claimed; two in a row have to find one.
    std::chrono::milliseconds overfull_interval{2'000};
    ClaimLimits claims = {};
  };

  // Journal, metrics and clock outlive it.
  Audit(Options options, Dependencies router, runtime::Metrics& metrics, const Clock& clock);
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;
  ~Audit();

  // The rank's predictions count from now on, until it leaves. Others are ignored: their answers
  // and verdicts come after their rank is gone.
  void follow(CacheId cache);
  void forget(CacheId cache);
  void compare(const Answered& answered);
  [[nodiscard]] Tally tally(CacheId cache) const;

 private:
  struct FollowedCache {
    Tally tally;
    bool tells = false;  // it has told its cached tokens
  };

  void judge_until_stopped(const std::stop_token& stop);
  void look_at_rooms(Instant& next_look);
  void visit(CacheId cache);
  void judge(const WaitingClaim& waiting);
  void count_unjudged(const WaitingClaim& waiting, OverCause cause);
  void look_for_overfull(const std::vector<CacheRoom>& rooms);
  void learn_anew(CacheId cache, const std::string& worker, Relearn how, std::string_view because);
  // Notes the rank's count and returns it. Nothing: it told none, or has left.
  std::optional<std::uint64_t> count(const Answered& answered, Instant now);
  void count_tokens(const Answered& answered, std::uint64_t actual);
  void wait_to_be_judged(const Answered& answered, std::uint64_t actual, Instant now);
  void count_miss(std::string_view worker, std::string_view result, std::string_view cause);
  [[nodiscard]] std::string_view cause_of_under(const Answered& answered) const;

  const Options options_;
  const Dependencies router_;
  runtime::Metrics& metrics_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Judge judge_ SL_GUARDED_BY(mutex_);
  std::unordered_map<CacheId, FollowedCache> followed_ SL_GUARDED_BY(mutex_);
  WaitingClaims waiting_;
  std::unordered_map<CacheId, std::uint32_t> overfull_looks_;  // in a row; the audit's thread
  std::optional<WorkerThread> thread_;                         // ends before all of the above
};

}  // namespace sightline::audit
