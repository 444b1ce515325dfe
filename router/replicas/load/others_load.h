// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/load/load_message.h"
#include "router/workers/fleet/load_book.h"

namespace sightline::load {

// Calls of LoadBook. The owner must make them in their order: SetOthers sets what a source has
// booked on one rank.
struct SetOthers {
  std::string source;
  RankLoad told;
};
// The source sent a message, so its load does not expire yet.
struct HearSource {
  std::string source;
};
// The source is gone, with all its load.
struct ForgetSource {
  std::string source;
};
using BookCall = std::variant<SetOthers, HearSource, ForgetSource>;

// Why a message of another router was ignored.
enum class LeftAside : std::uint8_t {
  // This router sent it.
  Own,
  // It came before, or a later message came before it.
  Late,
  // Its router has not answered us. It may be a recording of a lost router.
  Stranger,
  // Its router said before that it ends.
  Ended,
  // There are more than sources_max routers.
  NoRoom,
  // Some of its ranks exceed ranks_max.
  NoRanks,
};
inline constexpr std::size_t kLeftAsideCount = 6;
// The reason as the value of a metric's label: "own", "late", "stranger", "ended", "no-room" or
// "no-ranks".
std::string_view name_of(LeftAside reason);

// Times and limits for the load of other routers.
struct OthersOptions {
  // After this time without a message, a router's load counts as gone. The load book uses the same
  // time.
  Duration silent_after = fleet::kLoadSourceTimeout;
  // The pause between two requests. It doubles up to ask_pause_max while the requests do not help.
  Duration ask_pause = std::chrono::milliseconds(50);
  Duration ask_pause_max = std::chrono::seconds(1);
  // The most routers whose load counts.
  std::size_t sources_max = fleet::kLoadSourcesMax;
  std::size_t ranks_max = 16'384;  // of one router
};

// What the other routers have booked, by their messages. A router is identified by its instance, so
// a restarted router is another one. It counts as soon as it sends back a number that this router
// has drawn lately. From then on its newest totals count, until it is silent for too long or
// announces its end. A gap in its sequence numbers makes this router request all its totals.
// The owner calls turn() at due() and after every other call. Thread safety: one thread at a time.
class OthersLoad {
 public:
  // `me` is our instance. `draw` returns random 64-bit numbers that no other process can guess.
  OthersLoad(std::uint64_t me, std::function<std::uint64_t()> draw, OthersOptions options = {});

  // From now on others receive our messages. They may have sent messages that did not reach us, so
  // all of them are asked.
  void connected(Instant now);
  // Some messages of others were lost on the way here.
  void missed(Instant now);
  // Take a message, as decode() returned it.
  void hear(const LoadReport& told, Instant now);
  void hear(const Leave& gone, Instant now);
  // Returns false if the message is ignored, because its router does not count.
  [[nodiscard]] bool hear(const Takeover& taken, Instant now);

  // What the owner does next.
  struct Actions {
    std::vector<BookCall> calls;
    // Send to all. If that fails, later ones follow.
    std::vector<LoadAsk> asks;
  };
  // Returns the calls and requests that are due, once.
  Actions turn(Instant now);
  // When turn() has work. Instant::max(): only after another call.
  [[nodiscard]] Instant due() const;

  // The state of one other router.
  struct RouterLoad {
    std::uint64_t instance = 0;
    std::string_view name;  // valid until the next call.
    bool whole = false;     // no part of its totals is known to be missing.
    bool capped = false;    // some of its ranks exceed ranks_max.
    std::size_t ranks = 0;  // with any work.
    fleet::Load load;       // of all ranks, recent_prefill_blocks as sent.
    Duration age{};         // since its last message.
  };
  [[nodiscard]] std::vector<RouterLoad> sources(Instant now) const;
  // The same as a JSON array:
  // {"name","instance","whole","capped","ranks","requests","prefill_tokens", "blocks","heard_ms"}.
  [[nodiscard]] std::string json(Instant now) const;
  // The load that counts for the router on the rank. Nothing: no work, or the router does not
  // count.
  [[nodiscard]] std::optional<fleet::Load> told(std::uint64_t instance,
                                                const fleet::RankName& rank) const;

  // Counts since construction.
  struct OthersStatistics {
    std::array<std::uint64_t, kLeftAsideCount> left_aside{};  // by LeftAside
    std::uint64_t heard = 0;                                  // messages that counted.
    std::uint64_t snapshots = 0;  // of these, the ones that completed a snapshot.
    std::uint64_t gaps = 0;
    std::uint64_t asks = 0;
    std::uint64_t believed = 0;  // routers that answered us.
    std::uint64_t silent = 0;    // of these, the ones that fell silent.
    std::uint64_t ended = 0;     // of these, the ones that announced their end.
  };
  [[nodiscard]] const OthersStatistics& statistics() const { return statistics_; }

 private:
  // When to ask a router next.
  struct Asking {
    Instant due{};
    Duration pause{};
  };
  struct Rank {
    fleet::Load load;
    // Of the message that set it.
    std::uint64_t seq = 0;
  };
  struct Sender {
    std::string name;
    std::uint64_t seq = 0;  // of its last message.
    // seq of the first part of a snapshot, while no part is missing. 0: no snapshot is under way.
    std::uint64_t snapshot = 0;
    bool whole = false;
    bool capped = false;
    Instant heard_at{};
    Asking asking;
    std::map<fleet::RankName, Rank> ranks;
  };
  struct Past {
    std::uint64_t instance = 0;
    std::uint64_t seq = 0;  // up to which nothing counts.
  };
  struct Nonce {
    std::uint64_t value = 0;
    Instant drawn_at{};
  };

  void leave_aside(LeftAside reason);
  [[nodiscard]] bool has_our_nonce(const LoadReport& told, Instant now) const;
  // Returns null if the router does not count.
  Sender* believe(const LoadReport& told, Instant now);
  void apply(Sender& sender, const LoadReport& told, Instant now);
  void set(Sender& sender, const std::string& source, const LoadReport& told, const RankLoad& rank);
  void end_snapshot(Sender& sender, const std::string& source);
  [[nodiscard]] std::uint64_t past_seq(std::uint64_t instance) const;
  void remember(std::uint64_t instance, std::uint64_t seq);
  void forget(std::uint64_t instance);
  void expire(Instant now);
  LoadAsk ask(std::uint64_t of, Asking& asking, Instant now);
  std::uint64_t nonce(Instant now);

  const std::uint64_t me_;
  const std::function<std::uint64_t()> draw_;
  const OthersOptions options_;
  std::map<std::uint64_t, Sender> senders_;  // by instance, the ones that count
  std::deque<Past> past_;                    // the last ones that counted before
  std::deque<Nonce> nonces_;                 // ours, the last two
  Asking asking_all_;
  // Some routers may not count yet.
  bool strangers_ = true;
  std::vector<BookCall> calls_;
  OthersStatistics statistics_;
};

}  // namespace sightline::load
