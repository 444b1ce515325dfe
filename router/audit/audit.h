// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/runtime/metrics.h"
#include "common/runtime/worker_thread.h"

#include "router/audit/judge.h"

namespace sightline::audit {

// Wrong claims that wait for their announcement delay; more are counted but not judged.
inline constexpr std::size_t kClaimsMax = 4096;

// What was expected of an engine for one request and what it reports. Requests whose report says
// nothing about the prefix cache (aborted, failed, prompt_logprobs, several samples, prompts that
// are not known exactly) are not for the audit: a client must not be able to strike an engine.
struct Answered {
  std::string_view request_id;
  std::string_view worker;
  EngineId engine;
  std::uint64_t predicted = 0;          // tokens
  std::optional<std::uint64_t> actual;  // tokens, the engine's cached_tokens; nothing: not told
  bool same_prompt = true;              // the engine counts as many prompt tokens as the router
  bool busy = false;                    // other requests of ours ran on the engine at the decision
  std::span<const keys::BlockKey> blocks;  // those expected to be reused
  std::uint64_t removals = 0;              // the journal's position before the index was asked
  Instant decided{};                       // when the index was asked
};

// How an engine's predictions have turned out.
struct Tally {
  std::uint64_t equal = 0;
  std::uint64_t over = 0;         // less was reused than expected
  std::uint64_t under = 0;        // more was reused than expected
  std::uint64_t not_reused = 0;   // of over: the engine holds more than it reuses
  std::uint64_t unexplained = 0;  // of over: the index was wrong
  std::uint64_t relearned = 0;    // times its blocks were forgotten for that
  std::uint64_t untold = 0;       // answers that cannot be compared: the engine told no count
};

// What the audit needs of the rest of the router.
struct Surroundings {
  const index::RemovalJournal& journal;
  // Why the index may lack blocks of an engine, as the label of a metric; empty: it should not.
  std::function<std::string_view(EngineId)> why_incomplete;
  // Forget the engine's blocks and learn them anew: from a replay of its events, or from those
  // that are still to come.
  std::function<void(EngineId, Relearn)> relearn;
};

// Compares predictions with the engines' own counts; every difference is counted by cause, and an
// engine whose blocks are claimed wrongly twice in a row has them forgotten and learned anew.
//
// Thread safety: all methods from any thread. The functions of Surroundings run on the audit's
// thread or the caller's.
class Audit {
 public:
  struct Options {
    std::chrono::milliseconds announcement_delay = kAnnouncementDelay;
  };

  // Journal, metrics and clock outlive it.
  Audit(Options options, Surroundings around, runtime::Metrics& metrics, const Clock& clock);
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;
  ~Audit();

  // The engine's predictions count from now on, until it leaves. Others are ignored: their answers
  // and verdicts come after their engine is gone.
  void follow(EngineId engine);
  void forget(EngineId engine);
  void compare(const Answered& answered);
  [[nodiscard]] Tally tally(EngineId engine) const;

 private:
  struct Pending {
    Claim claim;
    std::string worker;
    std::string request_id;
    std::uint64_t predicted = 0;
    std::uint64_t actual = 0;
  };

  // An engine and what it has told of its cached tokens: something; a zero.
  struct Followed {
    Tally tally;
    bool tells = false;
    bool tells_zero = false;
  };

  void judge_until_stopped(const std::stop_token& stop);
  void judge(const Pending& pending);
  // Notes the engine's count and returns it. Nothing: it told none, or has left.
  std::optional<std::uint64_t> count(const Answered& answered, Instant now);
  void count_miss(std::string_view worker, std::string_view result, std::string_view cause);
  [[nodiscard]] std::string_view cause_of_under(const Answered& answered) const;

  const Options options_;
  const Surroundings around_;
  runtime::Metrics& metrics_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards the next two
  Judge judge_;
  std::unordered_map<EngineId, Followed> followed_;
  BoundedQueue<Pending> pending_{kClaimsMax};
  std::optional<WorkerThread> thread_;  // ends before all of the above
};

}  // namespace sightline::audit
