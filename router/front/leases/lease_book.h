// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"

// Reservations that peers hold at this router: by what name, and until when.
namespace sightline::leases {

inline constexpr std::size_t kInstanceBytesMax = 128;

// A reservation as its caller names it. The attempts of one number are the same request, asked of
// one router after the other; the highest counts.
struct Name {
  std::string instance;  // the caller's process: no two at any time have the same
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;

  bool operator==(const Name&) const = default;
};

// "INSTANCE.NUMBER.ATTEMPT", as in paths; an instance is letters, digits and any of "._:-".
std::string text_of(const Name& name);
// Nothing: it is no such text, or a part is too long.
std::optional<Name> parse_name(std::string_view text);
bool is_instance(std::string_view text);

// What is booked under a name; drawn by whoever books, each value once.
using LeaseId = std::uint64_t;

struct Limits {
  std::size_t leases_max = 1 << 17;    // open, of all instances
  std::size_t instances_max = 4096;    // with something open
  std::size_t released_max = 1 << 17;  // names remembered as released, of all instances
  Duration released_age = std::chrono::seconds(60);  // and for so long
  Duration silence_max = std::chrono::seconds(15);   // of an instance, until its leases end
};

// Who has booked what, as the callers tell. It says which leases end; ending them is its owner's
// part. All times are given and never go back.
// Thread safety: none.
class LeaseBook {
 public:
  explicit LeaseBook(const Limits& limits = {}) : limits_(limits) {}

  struct Found {
    enum class State : std::uint8_t {
      Free,  // may be booked
      Open,  // is booked, as `lease`
      Over,  // was released, or a later attempt was booked
    };
    State state = State::Free;
    LeaseId lease = 0;  // of Open
  };
  [[nodiscard]] Found find(const Name& name) const;

  struct Added {
    enum class Outcome : std::uint8_t {
      Booked,
      Open,  // by this name already, as another lease
      Over,  // as in Found
      Full,  // leases_max or instances_max is reached
    };
    Outcome outcome = Outcome::Booked;
    LeaseId open = 0;              // of Open
    std::optional<LeaseId> ended;  // of Booked: the earlier attempt's
  };
  // Books the lease under the name until it is released; at the latest until its own end, if it
  // has one, else until the instance has been silent for silence_max.
  Added add(const Name& name, LeaseId lease, std::optional<Instant> own_end, Instant now);

  // The name is over, whatever comes later under it. Gives the lease that ends; of a name that was
  // released before, or is not known yet, nothing. It takes no instance's place: names that never
  // were lock nobody out.
  std::optional<LeaseId> release(const Name& name, Instant now);

  // What one instance has open with the numbers `from` to `up_to`, both among them.
  struct Listed {
    std::uint64_t number = 0;
    std::uint32_t attempt = 0;
  };
  struct List {
    std::string_view instance;
    std::uint64_t from = 0;
    std::uint64_t up_to = 0;
    std::span<const Listed> open;  // each number once
  };
  struct Renewed {
    std::vector<LeaseId> ended;        // what is not on the list
    std::vector<std::size_t> missing;  // places on the list that are to be booked with add()
  };
  // The instance lives. Leases with an end of their own are left alone.
  Renewed renew(const List& list, Instant now);

  // Another router has booked the name: what is open here under its number with the same or an
  // earlier attempt ends, and is not remembered, so that it may come back.
  std::optional<LeaseId> supersede(const Name& name);

  // Any other sign of life of an instance.
  void hear(std::string_view instance, Instant now);

  // The leases whose time is up. What was released long ago is forgotten.
  std::vector<LeaseId> expire(Instant now);

  [[nodiscard]] std::size_t open() const { return open_; }
  // Names remembered as released.
  [[nodiscard]] std::size_t released() const { return released_.size(); }

 private:
  // The highest attempt of a number.
  struct Entry {
    std::uint32_t attempt = 0;
    LeaseId lease = 0;
    std::optional<Instant> own_end;
  };
  struct Instance {
    Instant heard{};
    std::map<std::uint64_t, Entry> entries;  // what is open, by number; not empty
    std::size_t with_own_end = 0;
  };
  using Instances = std::map<std::string, Instance, std::less<>>;
  using Entries = std::map<std::uint64_t, Entry>;
  // An instance and a number. A number is open or released, never both.
  using Key = std::pair<std::string, std::uint64_t>;
  struct Release {
    std::uint32_t attempt = 0;
    std::uint64_t turn = 0;
  };
  struct Turn {
    Instant at{};
    Key key;
    std::uint64_t turn = 0;
  };

  Instance* open_instance(std::string_view name, Instant now);
  // Ends an open lease; gives the place after it.
  Entries::iterator close(Instance& instance, Entries::iterator place);
  void drop_if_empty(Instances::iterator instance);
  void remember(Key key, std::uint32_t attempt, Instant now);
  void forget_oldest();
  void end_overdue(Instance& instance, Instant now, std::vector<LeaseId>& ended);

  const Limits limits_;
  Instances instances_;
  std::map<Key, Release> released_;
  std::deque<Turn> turns_;  // the oldest release first; also of what has been booked anew since
  std::uint64_t turn_ = 0;
  std::size_t open_ = 0;
};

}  // namespace sightline::leases
