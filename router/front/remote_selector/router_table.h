// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/result.h"
#include "common/http/client.h"

#include "router/front/selection_json/workers_report.h"

namespace sightline::remote_selector {

// A router that may be asked.
struct Router {
  // Unique: no other router ever has it.
  std::uint64_t id = 0;
  http::ServerAddress address;
  // For example "10.0.0.7:8092".
  std::string name;
};

// The state of a router, as this frontend sees it.
enum class RouterState : std::uint8_t {
  // It has not answered yet.
  Unheard,
  // It answers and is ready.
  Well,
  // As Well, but its blocks are older, or of fewer ranks, than those of another router.
  Behind,
  // It answers, but has no workers yet, or does not know their blocks yet.
  Unready,
  // It did not answer the last question, or not with a valid answer.
  Failed,
  // Its block keys differ from this frontend's.
  Unfit,
};
inline constexpr std::size_t kRouterStates = 6;
// "unheard", "well", "behind", "unready", "failed" or "unfit".
std::string_view name_of(RouterState state);

// The routers, their states, and the order in which this frontend asks them. The order follows a
// hash of the frontend's name and the router's address (rendezvous hashing). So one router sees the
// whole load of a frontend, and the frontends are spread over the routers. When a router comes or
// goes, only the frontends move that had it or get it.
//
// Thread safety: any thread may call any method.
class RouterTable {
 public:
  // `identity` names the settings that this frontend's block keys depend on.
  RouterTable(std::string instance, std::string identity);

  // Sets the addresses of all routers. A router that was there before keeps its state.
  void set(const std::vector<http::ServerAddress>& addresses);

  // Returns the routers in the order to ask them: Well, Behind (for example cut off from NATS),
  // Unready, Unheard, Failed. A failed router may be back. Unfit routers are never asked.
  [[nodiscard]] std::vector<Router> order() const;
  // Returns all routers.
  [[nodiscard]] std::vector<Router> all() const;
  // Returns whether the last answer of a router was valid. It need not be ready.
  [[nodiscard]] bool answers(std::uint64_t id) const;

  // Returns the time until which a router has answered. For a router that answers this is `now`.
  // For a silent router it is the time when the silence was first noticed. It returns nothing if
  // the router never answered or failed in another way.
  [[nodiscard]] std::optional<Instant> answered_until(std::uint64_t id, Instant now) const;

  // Both set the state of a router. They return true if its state changes.
  bool answered(std::uint64_t id, const selection_json::WorkersReport& told);
  // silent_at is the present time, if the router did not answer in time.
  bool failed(std::uint64_t id, const std::string& reason,
              std::optional<Instant> silent_at = std::nullopt);

  // Routers that have fallen behind the others or caught up after the last call.
  struct Standing {
    // The router's name.
    std::string router;
    bool is_behind = false;
    // The ranks whose blocks it knows.
    std::uint32_t known = 0;
    // The most ranks whose blocks another router knows.
    std::uint32_t most = 0;
    // Why its blocks are old, or empty.
    std::string stale;
  };
  std::vector<Standing> take_standings();

  // Returns what the workers serve, as reported by the first Well router, or else by the first
  // router in the state Behind. Null without a report. A router in the state Unready may lack
  // workers.
  [[nodiscard]] std::shared_ptr<const fleet::Served> served() const;
  enum class Names : bool { No, Yes };
  // Returns Unavailable with the reasons if no router is Well. With names, the text is for
  // operators.
  [[nodiscard]] Result<Done> check(Names names) const;
  // Returns the number of routers in each RouterState.
  [[nodiscard]] std::array<std::size_t, kRouterStates> counts() const;

 private:
  struct Entry {
    Router router;
    std::uint64_t rank = 0;  // the lowest is asked first
    RouterState state = RouterState::Unheard;
    std::string trouble = "has not answered yet";
    std::shared_ptr<const fleet::Served> served;
    std::optional<std::uint32_t> known;
    std::string stale;
    bool is_behind = false;
    std::optional<Instant> silent_since;

    // Returns `state`, or Behind.
    [[nodiscard]] RouterState standing() const {
      return state == RouterState::Well && is_behind ? RouterState::Behind : state;
    }
  };
  static bool answers(const Entry& entry) {
    return entry.state == RouterState::Well || entry.state == RouterState::Unready;
  }
  // Compares all routers, after any of them has changed.
  void compare() SL_REQUIRES(mutex_);
  Entry* find(std::uint64_t id) SL_REQUIRES(mutex_);

  const std::string instance_;
  const std::string identity_;
  // Held for memory work only.
  mutable Mutex mutex_;
  // By rank.
  std::vector<Entry> entries_ SL_GUARDED_BY(mutex_);
  // Not yet returned by take_standings().
  std::vector<Standing> standings_ SL_GUARDED_BY(mutex_);
  std::uint64_t next_id_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::remote_selector
