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

// The prediction for one request and the rank's report about it. The caller leaves out requests
// whose report proves nothing: aborted or failed ones, prompt_logprobs, several samples, prompts
// that are not known exactly. Otherwise a client could cause strikes of a rank.
struct Answered {
  std::string_view request_id;
  std::string_view worker;
  CacheId cache;
  // Tokens of the whole prompt, as the router computed them.
  std::uint64_t prompt_tokens = 0;
  // Tokens of the prompt on the rank that holds most of them.
  std::uint64_t best = 0;
  // Tokens that the router expected the rank to reuse, and how many of them belong to images.
  std::uint64_t predicted = 0;
  std::uint64_t predicted_image = 0;
  // The rank's cached_tokens. Empty if it reported no count.
  std::optional<std::uint64_t> actual;
  // If the rank reports counts, a missing count means zero.
  bool leaves_zero_out = false;
  // The rank counts as many prompt tokens as the router.
  bool same_prompt = true;
  // Other requests of this router ran on the rank at the decision.
  bool busy = false;
  // The blocks that the rank was expected to reuse.
  std::span<const keys::BlockKey> blocks;
  // The journal's position before the index was asked.
  std::uint64_t removals = 0;
  // When the index was asked.
  Instant decided{};
};

// The results of a rank's predictions.
struct Tally {
  std::uint64_t equal = 0;
  // Less was reused than expected.
  std::uint64_t over = 0;
  // More was reused than expected.
  std::uint64_t under = 0;
  // Of `over`: the rank does not reuse all that it holds.
  std::uint64_t not_reused = 0;
  // Of `over`: the rank's claims are an upper bound.
  std::uint64_t upper_bound = 0;
  // Of `over`: the router had not applied all announcements in time.
  std::uint64_t not_judged = 0;
  // Of `over`: the index was wrong.
  std::uint64_t unexplained = 0;
  // Times that the index claimed more blocks than the rank has.
  std::uint64_t overfull = 0;
  // Resyncs because of `unexplained` or `overfull`.
  std::uint64_t relearned = 0;
  // Resyncs that were not done, because another one was too recent.
  std::uint64_t postponed = 0;
  // Answers without a count, which cannot be compared.
  std::uint64_t untold = 0;
  // The cause of the last resync: "unexplained" or "overfull". Empty: no resync.
  std::string_view relearned_because;
};

// What the audit uses of the rest of the router.
struct Deps {
  const index::RemovalJournal& journal;
  const index::IndexStatistics& index;
  // Returns the facts from a cache's events. Empty if the router does not follow them.
  std::function<std::optional<operations::CacheFacts>(CacheId)> facts;
  // Reads a rank's events soon after the return, so facts() shows how far they are applied.
  std::function<void(CacheId)> look;
  // Returns all followed caches.
  std::function<std::vector<CacheRoom>()> rooms;
  // Handles blocks that found no room in the index. Called with the result of rooms() every
  // overfull_interval.
  std::function<void(const std::vector<CacheRoom>&)> watch_rooms = {};
  // Drops the rank's blocks and loads them again, from a replay of its events or from new events
  // only.
  std::function<void(CacheId, Relearn)> relearn;
};

// Compares predictions with the ranks' own counts, and counts each difference by its cause. It
// resyncs a rank's blocks in two cases: the index claimed them wrongly twice in a row, or it claims
// more than the rank has. A verdict needs all announcements of the rank to be applied. If this is
// not known in time, the claim is not judged.
//
// Thread safety: any thread may call any method. The functions of Deps run on the audit's
// thread or on the caller's.
class Audit {
 public:
  struct Options {
    std::chrono::milliseconds announcement_delay = kAnnouncementDelay;
    // The pause between looks at a rank's announcements, and the time after the answer when judging
    // ends.
    std::chrono::milliseconds look_again_after{100};
    std::chrono::milliseconds judged_within{10'000};
    // The interval of looks for ranks with too many claimed blocks. Two looks in a row must find
    // the rank.
    std::chrono::milliseconds overfull_interval{2'000};
    ClaimLimits claims = {};
  };

  // Journal, metrics and clock outlive the audit.
  Audit(Options options, Deps router, runtime::Metrics& metrics, const Clock& clock);
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;
  ~Audit();

  // follow() begins to count a rank's predictions, forget() ends it. Other ranks are ignored: their
  // answers and verdicts come after their end.
  void follow(CacheId cache);
  void forget(CacheId cache);
  // Compares the prediction for a request with the rank's report.
  // Call it once for each answered request.
  void compare(const Answered& answered);
  // Returns the counts of a rank. All are 0 for an unknown rank.
  [[nodiscard]] Tally tally(CacheId cache) const;

 private:
  struct FollowedCache {
    Tally tally;
    // It has reported its cached tokens at least once.
    bool tells = false;
  };

  // The audit's thread: judges due claims, and looks for overfull ranks every overfull_interval.
  void judge_until_stopped(const std::stop_token& stop);
  void look_at_rooms(Instant& next_look);
  void visit(CacheId cache);
  void judge(const WaitingClaim& waiting);
  // Counts a claim without a verdict, by the cause UpperBound or NotJudged.
  void count_unjudged(const WaitingClaim& waiting, OverCause cause);
  void look_for_overfull(const std::vector<CacheRoom>& rooms);
  // Counts and starts a resync, or counts that it is postponed. Does nothing for Relearn::No.
  void learn_anew(CacheId cache, const std::string& worker, Relearn how, std::string_view because);
  // Records the rank's count and returns it. Empty: it reported no count, or is not followed.
  std::optional<std::uint64_t> count(const Answered& answered, Instant now);
  void count_tokens(const Answered& answered, std::uint64_t actual);
  void wait_to_be_judged(const Answered& answered, std::uint64_t actual, Instant now);
  void count_miss(std::string_view worker, std::string_view result, std::string_view cause);
  [[nodiscard]] std::string_view cause_of_under(const Answered& answered) const;

  const Options options_;
  const Deps router_;
  runtime::Metrics& metrics_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Judge judge_ SL_GUARDED_BY(mutex_);
  std::unordered_map<CacheId, FollowedCache> followed_ SL_GUARDED_BY(mutex_);
  WaitingClaims waiting_;
  // Looks in a row that found too many blocks. Only for the audit's thread.
  std::unordered_map<CacheId, std::uint32_t> overfull_looks_;
  // Ends before all members above.
  std::optional<WorkerThread> thread_;
};

}  // namespace sightline::audit
