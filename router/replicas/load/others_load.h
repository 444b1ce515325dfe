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

#include "router/replicas/load/message.h"
#include "router/workers/fleet/load_book.h"

namespace sightline::load {

// Calls of LoadBook, to be made in their order.
struct SetOthers {
  std::string source;
  RankLoad told;
};
struct HearSource {
  std::string source;
};
struct ForgetSource {
  std::string source;
};
using BookCall = std::variant<SetOthers, HearSource, ForgetSource>;

// Why what another router told was left aside.
enum class LeftAside : std::uint8_t {
  Own,       // our own words
  Late,      // repeated, or behind one that was sent later
  Stranger,  // not of a router that has answered us: it may be of one that is gone
  Ended,     // of a router that said that it ends
  NoRoom,    // more than sources_max routers
  NoRanks,   // some of its ranks are more than ranks_max
};
inline constexpr std::size_t kLeftAsideCount = 6;
// As a metric's label: "own", "late", "stranger", "ended", "no-room", "no-ranks".
std::string_view name_of(LeftAside reason);

struct OthersOptions {
  // What a router told is void after so long without a word, in the book too.
  Duration silent_after = fleet::kLoadSourceTimeout;
  // Between asks, doubled up to ask_pause_max while they do not help.
  Duration ask_pause = std::chrono::milliseconds(50);
  Duration ask_pause_max = std::chrono::seconds(1);
  std::size_t sources_max = fleet::kLoadSourcesMax;
  std::size_t ranks_max = 16'384;  // of one router
};

// What the other routers have booked, by what they tell. A router is known by its instance, so one
// that was started again is another. It is believed once it has told a number that we have drawn
// lately; from then on what it told last counts, until it is silent for too long or says that it
// ends. A gap in its words makes us ask for all of them. Messages and time in; calls of the book
// and asks out. Whoever owns it calls turn() at due() and after every other call. Thread safety:
// none.
class OthersLoad {
 public:
  // me: our instance. draw: random 64-bit numbers that nobody can guess.
  OthersLoad(std::uint64_t me, std::function<std::uint64_t()> draw, OthersOptions options = {});

  // What is sent from now on is heard by the others, who may have told what we have not heard.
  void connected(Instant now);
  // Some of what the others told is missing.
  void missed(Instant now);
  // As decode() gives them.
  void hear(const Told& told, Instant now);
  void hear(const Gone& gone, Instant now);
  // False: it is left aside, being of a router that is not believed.
  [[nodiscard]] bool hear(const Taken& taken, Instant now);

  struct Turn {
    std::vector<BookCall> calls;
    std::vector<Ask> asks;  // to be sent to all; where that fails, later ones will do
  };
  Turn turn(Instant now);
  [[nodiscard]] Instant due() const;

  // What counts of one other router.
  struct Source {
    std::uint64_t instance = 0;
    std::string_view name;  // lives until the next call
    bool whole = false;     // nothing that it told is known to be missing
    bool capped = false;    // some of its ranks are more than ranks_max
    std::size_t ranks = 0;  // with any work
    fleet::Load load;       // of all ranks; recent_prefill_blocks as told
    Duration age{};         // since it was heard
  };
  [[nodiscard]] std::vector<Source> sources(Instant now) const;
  // An array of them: {"name","instance","whole","capped","ranks","requests","prefill_tokens",
  // "blocks","heard_ms"}.
  [[nodiscard]] std::string json(Instant now) const;
  // What the router is believed to have booked on the rank; nothing: no work, or not believed.
  [[nodiscard]] std::optional<fleet::Load> told(std::uint64_t instance,
                                                const fleet::RankName& rank) const;

  struct Statistics {
    std::array<std::uint64_t, kLeftAsideCount> left_aside{};  // by LeftAside
    std::uint64_t heard = 0;                                  // messages that counted
    std::uint64_t snapshots = 0;                              // of these, that made whole
    std::uint64_t gaps = 0;
    std::uint64_t asks = 0;
    std::uint64_t believed = 0;  // routers that answered us
    std::uint64_t silent = 0;    // of these, that fell silent
    std::uint64_t ended = 0;     // of these, that said so
  };
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }

 private:
  // When to ask next.
  struct Asking {
    Instant due{};
    Duration pause{};
  };
  struct Rank {
    fleet::Load load;
    std::uint64_t seq = 0;  // of the message that told it
  };
  struct Sender {
    std::string name;
    std::uint64_t seq = 0;       // the last one heard
    std::uint64_t snapshot = 0;  // seq of the first part, while no part is missing; 0: none
    bool whole = false;
    bool capped = false;
    Instant heard_at{};
    Asking asking;
    std::map<fleet::RankName, Rank> ranks;
  };
  struct Past {
    std::uint64_t instance = 0;
    std::uint64_t seq = 0;  // up to which nothing counts
  };
  struct Nonce {
    std::uint64_t value = 0;
    Instant drawn_at{};
  };

  void leave_aside(LeftAside reason);
  [[nodiscard]] bool has_our_nonce(const Told& told, Instant now) const;
  // Null: it is not believed.
  Sender* believe(const Told& told, Instant now);
  void apply(Sender& sender, const Told& told, Instant now);
  void set(Sender& sender, const std::string& source, const Told& told, const RankLoad& rank);
  void end_snapshot(Sender& sender, const std::string& source);
  [[nodiscard]] std::uint64_t past_seq(std::uint64_t instance) const;
  void remember(std::uint64_t instance, std::uint64_t seq);
  void forget(std::uint64_t instance);
  void expire(Instant now);
  Ask ask(std::uint64_t of, Asking& asking, Instant now);
  std::uint64_t nonce(Instant now);

  const std::uint64_t me_;
  const std::function<std::uint64_t()> draw_;
  const OthersOptions options_;
  std::map<std::uint64_t, Sender> senders_;  // by instance; those that are believed
  std::deque<Past> past_;                    // the last ones that are not believed any more
  std::deque<Nonce> nonces_;                 // ours, the last two
  Asking asking_all_;
  bool strangers_ = true;  // there may be routers that are not believed yet
  std::vector<BookCall> calls_;
  Statistics statistics_;
};

}  // namespace sightline::load
