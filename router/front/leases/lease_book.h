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

// The reservations that frontends hold at this router: their names and their ends.
namespace sightline::leases {

// The longest name of an instance, in bytes.
inline constexpr std::size_t kInstanceBytesMax = 128;

// The name that a caller gives a reservation. All attempts of one number are the same request, sent
// to one router after the other. The highest attempt counts.
struct Name {
  // The caller's process. No two processes have the same name at the same time.
  std::string instance;
  std::uint64_t number = 0;
  std::uint32_t attempt = 0;

  bool operator==(const Name&) const = default;
};

// Returns "INSTANCE.NUMBER.ATTEMPT", as in paths. An instance has letters, digits and the
// characters "._:-".
std::string text_of(const Name& name);
// Returns nothing if the text has another form or a part is too long.
std::optional<Name> parse_name(std::string_view text);
// Returns whether a text is a valid name of an instance.
bool is_instance(std::string_view text);

// The number of a reservation under a name. The owner of the book draws it, each number once.
using LeaseId = std::uint64_t;

// The limits of a book.
struct Limits {
  // Open leases of all instances.
  std::size_t leases_max = 1 << 17;
  // Instances with open leases.
  std::size_t instances_max = 4096;
  // Released names that are remembered, of all instances.
  std::size_t released_max = 1 << 17;
  // The time for which they are remembered.
  Duration released_age = std::chrono::seconds(60);
  // The leases of an instance end after this time without a message from it.
  Duration silence_max = std::chrono::seconds(15);
};

// Records which frontend has reserved what, from the frontends' messages. It returns the leases
// that end, and its owner ends them. The caller passes all times, which must not go back.
//
// Thread safety: one owner.
class LeaseBook {
 public:
  explicit LeaseBook(const Limits& limits = {}) : limits_(limits) {}

  // The state of a name.
  struct NameState {
    enum class State : std::uint8_t {
      // The name may be reserved.
      Free,
      // It is reserved, as `lease`.
      Open,
      // It was released, or a later attempt was reserved.
      Over,
    };
    State state = State::Free;
    // Valid for Open.
    LeaseId lease = 0;
  };
  [[nodiscard]] NameState find(const Name& name) const;

  // The result of add().
  struct Added {
    enum class Outcome : std::uint8_t {
      Booked,
      // The name has another lease already.
      Open,
      // As in NameState.
      Over,
      // leases_max or instances_max is reached.
      Full,
    };
    Outcome outcome = Outcome::Booked;
    // For Open: the other lease.
    LeaseId open = 0;
    // For Booked: the lease of an earlier attempt, which ends.
    std::optional<LeaseId> ended;
  };
  // Adds a lease under a name. It ends when the name is released. A lease with an end of its own
  // ends then at the latest. Another one ends after its instance was silent for silence_max.
  Added add(const Name& name, LeaseId lease, std::optional<Instant> own_end, Instant now);

  // Ends a name: no later message can reserve it. Returns the lease that ends. Returns nothing for
  // a name that was released before or is unknown. An unknown name does not count as an instance.
  // Invented names therefore lock no frontend out.
  std::optional<LeaseId> release(const Name& name, Instant now);

  // The open leases of one instance, with the numbers `from` to `up_to`, both included.
  struct Listed {
    std::uint64_t number = 0;
    std::uint32_t attempt = 0;
  };
  struct List {
    std::string_view instance;
    std::uint64_t from = 0;
    std::uint64_t up_to = 0;
    // Each number once.
    std::span<const Listed> open;
  };
  // The result of renew().
  struct Renewed {
    // The leases that are not on the list.
    std::vector<LeaseId> ended;
    // Indexes of the list's entries that the caller must add().
    std::vector<std::size_t> missing;
  };
  // Compares an instance's list with the book, and records that the instance is alive. Leases with
  // an end of their own stay.
  Renewed renew(const List& list, Instant now);

  // Another router has reserved the name. The lease of this number ends, if its attempt is the same
  // or earlier. The name is not remembered as released, because it may come back.
  std::optional<LeaseId> supersede(const Name& name);

  // Records any other message of an instance.
  void hear(std::string_view instance, Instant now);

  // Returns the leases whose time has ended. Forgets names that were released long ago.
  std::vector<LeaseId> expire(Instant now);

  // The number of open leases.
  [[nodiscard]] std::size_t open() const { return open_; }
  // The number of names that are remembered as released.
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
    std::map<std::uint64_t, Entry> entries;  // open leases by number, never empty
    std::size_t with_own_end = 0;
  };
  using Instances = std::map<std::string, Instance, std::less<>>;
  using Entries = std::map<std::uint64_t, Entry>;
  // An instance and a number. A number is open or released, and never both.
  using Key = std::pair<std::string, std::uint64_t>;
  struct Release {
    std::uint32_t attempt = 0;
    std::uint64_t turn = 0;
  };
  struct Deadline {
    Instant at{};
    Key key;
    std::uint64_t turn = 0;
  };

  Instance* open_instance(std::string_view name, Instant now);
  // Ends an open lease. Returns the place after it.
  Entries::iterator close(Instance& instance, Entries::iterator place);
  void drop_if_empty(Instances::iterator instance);
  void remember(Key key, std::uint32_t attempt, Instant now);
  void forget_oldest();
  void end_overdue(Instance& instance, Instant now, std::vector<LeaseId>& ended);

  const Limits limits_;
  Instances instances_;
  std::map<Key, Release> released_;
  // The oldest release first. It also has entries of names that were reserved again.
  std::deque<Deadline> turns_;
  std::uint64_t turn_ = 0;
  std::size_t open_ = 0;
};

}  // namespace sightline::leases
