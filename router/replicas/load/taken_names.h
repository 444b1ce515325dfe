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

#include "router/replicas/load/load_message.h"

namespace sightline::load {

// How many takeovers are kept, and for how long they are sent.
struct TakenOptions {
  // The most takeovers that are kept. The oldest ones make room.
  std::size_t names_max = 131'072;
  // As OwnOptions::message_bytes_max.
  std::size_t message_bytes_max = 64U << 10U;
  // A takeover is repeated with each snapshot up to this age. Snapshots come each second, so these
  // are three chances.
  Duration told_again = std::chrono::seconds(3);
  // The same for a snapshot that answers a request. A router that was away for longer has lost what
  // it had booked: a frontend may be silent no longer than this.
  Duration told_to_askers = std::chrono::seconds(15);
  // A takeover is kept for this time.
  Duration remembered = std::chrono::seconds(60);
};

// If a reservation is booked at two routers, it counts at the later one. Routers send each other
// which reservations they have taken over. A router with an earlier booking ends it.
// The order of two takeovers of a number is: attempt, turn, instance of the router. No clocks are
// compared: a turn is above all turns received before. If two routers take a reservation at the
// same moment, both decide alike.
// If a takeover reaches no router, the booking counts twice. It ends there when the frontend renews
// its list, when the frontend falls silent, or with the request. Thread safety: one thread at a
// time.
class TakenNames {
 public:
  // `me` is our instance.
  explicit TakenNames(std::uint64_t me, TakenOptions options = {}) : me_(me), options_(options) {}

  // Sets TakenOptions::message_bytes_max for later messages. There must be room for any name.
  void set_message_bytes_max(std::size_t bytes) { options_.message_bytes_max = bytes; }

  // These reservations are booked here now.
  void take(std::vector<ReservationName> names, Instant now);
  // Takes the message of a router that counts. Returns the names whose bookings here end, up to
  // their attempt.
  std::vector<ReservationName> hear(const Takeover& taken);

  // The takeovers that are sent beside the new ones: nothing, young ones (told_again), or all up to
  // told_to_askers.
  enum class Again : std::uint8_t { Nothing, Young, ToAskers };
  // Returns the messages for all routers.
  std::vector<std::string> tell(Again again, Instant now);
  // Whether a takeover was not sent yet.
  [[nodiscard]] bool has_news() const { return untold_ > 0; }

  // Counts since construction.
  struct TakeoverStatistics {
    std::uint64_t taken = 0;      // names.
    std::uint64_t ended = 0;      // names that others took and that may be booked here.
    std::uint64_t forgotten = 0;  // dropped before they were sent.
  };
  [[nodiscard]] const TakeoverStatistics& statistics() const { return statistics_; }
  // The kept takeovers, also ones that were replaced.
  [[nodiscard]] std::size_t size() const { return log_.size(); }

 private:
  using Key = std::pair<std::string, std::uint64_t>;  // frontend, number
  // The newest takeover of a number, by this router.
  struct Taking {
    std::uint32_t attempt = 0;
    std::uint64_t turn = 0;
  };
  // A takeover in the order of its time.
  struct Logged {
    TakenName taken;
    Instant at{};
  };
  // Whether this is still the newest takeover of its number.
  [[nodiscard]] bool stands(const TakenName& taken) const;
  void forget_first();
  [[nodiscard]] std::vector<std::string> written(std::size_t from) const;

  const std::uint64_t me_;
  TakenOptions options_;
  std::map<Key, Taking> takings_;
  // Oldest first, with the replaced ones.
  std::deque<Logged> log_;
  // The last ones, not sent yet.
  std::size_t untold_ = 0;
  // The highest turn sent or received.
  std::uint64_t turn_ = 0;
  TakeoverStatistics statistics_;
};

}  // namespace sightline::load
