// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/load/message.h"

namespace sightline::load {

struct TakenOptions {
  // Takings that are remembered, and told while they are young. The oldest give way.
  std::size_t names_max = 131'072;
  // As OwnOptions::message_bytes_max.
  std::size_t message_bytes_max = 64U << 10U;
  // A taking is told again with each snapshot while it is not older than this: three chances.
  Duration told_again = std::chrono::seconds(3);
  // With a snapshot that answers an ask: whoever was away for longer than a caller may be silent
  // has lost what it had booked.
  Duration told_to_askers = std::chrono::seconds(15);
  Duration remembered = std::chrono::seconds(60);
};

// A reservation that is booked at two routers counts at one, the later. Routers tell each other
// which they have taken; who has an earlier one ends it. The order of two takings of a number is
// attempt, turn, instance of the router: turns grow with what is heard, as no clocks are compared,
// and where two routers take a reservation at once both agree whose counts. A taking that nobody
// hears is a booking that counts twice until its caller renews its list where it was, or falls
// silent there, or it ends. Thread safety: none.
class TakenNames {
 public:
  explicit TakenNames(std::uint64_t me, TakenOptions options = {}) : me_(me), options_(options) {}

  // As TakenOptions::message_bytes_max, for what is told from now on; room for any name at least.
  void set_message_bytes_max(std::size_t bytes) { options_.message_bytes_max = bytes; }

  // Booked here now.
  void take(std::vector<ReservationName> names, Instant now);
  // Of a router that is believed. Gives the names whose bookings here, up to that attempt, end.
  std::vector<ReservationName> hear(const Taken& taken);

  // What is told beside what nobody was told yet.
  enum class Again : std::uint8_t { Nothing, Young, ToAskers };
  // Messages for all.
  std::vector<std::string> tell(Again again, Instant now);
  [[nodiscard]] bool has_news() const { return untold_ > 0; }

  struct Statistics {
    std::uint64_t taken = 0;      // names
    std::uint64_t ended = 0;      // names that others took and that may be booked here
    std::uint64_t forgotten = 0;  // given way before anybody was told
  };
  [[nodiscard]] const Statistics& statistics() const { return statistics_; }
  [[nodiscard]] std::size_t size() const { return log_.size(); }

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // caller, number
  struct Taking {
    std::uint32_t attempt = 0;
    std::uint64_t turn = 0;
  };
  struct Logged {
    TakenName taken;
    Instant at{};
  };
  // Another taking of the number has not taken its place.
  [[nodiscard]] bool stands(const TakenName& taken) const;
  void forget_first();
  [[nodiscard]] std::vector<std::string> written(std::size_t from) const;

  const std::uint64_t me_;
  TakenOptions options_;
  std::map<Key, Taking> takings_;
  std::deque<Logged> log_;  // the oldest first; also what does not stand any more
  std::size_t untold_ = 0;  // the last ones
  std::uint64_t turn_ = 0;  // the highest heard or told
  Statistics statistics_;
};

}  // namespace sightline::load
