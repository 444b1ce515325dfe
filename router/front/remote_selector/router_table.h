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

#include "router/front/selection_json/served.h"

namespace sightline::remote_selector {

// A router that may be asked.
struct Router {
  std::uint64_t id = 0;  // never that of another one
  http::ServerAddress address;
  std::string name;  // "10.0.0.7:8092"
};

enum class RouterState : std::uint8_t {
  Unheard,  // has not answered yet
  Well,
  Behind,   // well, but what it knows is older, or of fewer ranks, than what another one knows
  Unready,  // answers, but lacks workers, or has not learnt yet what they hold
  Failed,   // did not answer, or not with sense, when it was asked last
  Unfit,    // its block keys are others
};
inline constexpr std::size_t kRouterStates = 6;
std::string_view name_of(RouterState state);

// Which routers there are, how they are, and in which order this frontend asks them. The order is
// by a hash of the frontend's name and the router's address: each frontend has one router that sees
// all of its load at once, different frontends have different ones, and when a router comes or goes
// only those frontends move that had it, or get it.
// Thread safety: all methods from any thread.
class RouterTable {
 public:
  // The keys of this frontend are of `identity`.
  RouterTable(std::string instance, std::string identity);

  // Those that there are now. One that was there before stays what it is.
  void set(const std::vector<http::ServerAddress>& addresses);

  // Whom to ask, the best first: those that are well, then those that are behind, as one is that is
  // cut off from NATS, then those that say that they are not ready,
  // then those not heard of, then those that failed, who may be back; never one that is unfit.
  [[nodiscard]] std::vector<Router> order() const;
  [[nodiscard]] std::vector<Router> all() const;
  // Whether it answered, with sense, when it was asked last; ready or not.
  [[nodiscard]] bool answers(std::uint64_t id) const;

  // `now`, of one that answers; of one that has not answered in time since it last did, when that
  // was first noticed; nothing: it never answered, or failed in another way.
  [[nodiscard]] std::optional<Instant> answered_until(std::uint64_t id, Instant now) const;

  // What was learnt of a router; true if its state is another one now.
  bool answered(std::uint64_t id, const selection_json::Told& told);
  // silent_at: now, where it failed in that it did not answer in time.
  bool failed(std::uint64_t id, const std::string& reason,
              std::optional<Instant> silent_at = std::nullopt);

  // Those that are behind others since this was called last, or no more.
  struct Standing {
    std::string router;  // its name
    bool is_behind = false;
    std::uint32_t known = 0;  // ranks of which it knows what they hold
    std::uint32_t most = 0;   // of which another one does
    std::string stale;        // why what it knows is old; empty: it is not
  };
  std::vector<Standing> take_standings();

  // Of the first router that is well; null: of none. One that is not ready may lack workers.
  [[nodiscard]] std::shared_ptr<const fleet::Served> served() const;
  // Unavailable, with the reasons, if no router can be asked. With names: for operators.
  enum class Names : bool { No, Yes };
  [[nodiscard]] Result<Done> check(Names names) const;
  // By RouterState.
  [[nodiscard]] std::array<std::size_t, kRouterStates> counts() const;

 private:
  struct Entry {
    Router router;
    std::uint64_t rank = 0;  // less: asked sooner
    RouterState state = RouterState::Unheard;
    std::string trouble = "has not answered yet";
    std::shared_ptr<const fleet::Served> served;
    std::optional<std::uint32_t> known;
    std::string stale;
    bool is_behind = false;
    std::optional<Instant> silent_since;

    // `state`, or Behind.
    [[nodiscard]] RouterState standing() const {
      return state == RouterState::Well && is_behind ? RouterState::Behind : state;
    }
  };
  static bool answers(const Entry& entry) {
    return entry.state == RouterState::Well || entry.state == RouterState::Unready;
  }
  // After anything was learnt of a router.
  void compare() SL_REQUIRES(mutex_);
  Entry* find(std::uint64_t id) SL_REQUIRES(mutex_);

  const std::string instance_;
  const std::string identity_;
  mutable Mutex mutex_;                                    // held for memory work only
  std::vector<Entry> entries_ SL_GUARDED_BY(mutex_);       // by rank
  std::vector<Standing> standings_ SL_GUARDED_BY(mutex_);  // not told yet
  std::uint64_t next_id_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::remote_selector
