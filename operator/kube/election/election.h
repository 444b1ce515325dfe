// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/base/rng.h"

#include "operator/kube/client/failure.h"
#include "operator/kube/object/resource.h"
#include "operator/kube/object/value.h"

namespace sightline::election {

struct ElectionOptions {
  object::Key lease;
  std::string identity;  // of this process, unlike any other's
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
};

// Error: InvalidArgument unless lease > renew deadline > retry period with its jitter > 0, and
// lease and identity have names.
Result<Done> check(const ElectionOptions& options);

// Leases, of coordination.k8s.io/v1.
[[nodiscard]] const object::Resource& lease_resource();

// What the candidate has to do next.
struct WantGet {};
struct WantCreate {
  object::Value lease;
};
struct WantUpdate {
  object::Value lease;
};
struct WantWait {
  Instant until{};
};
// It led and leads no more: the process has to end.
struct Lost {};
using Want = std::variant<WantGet, WantCreate, WantUpdate, WantWait, Lost>;

// One candidate for a Lease, by the rules of client-go: whether another one's lease is over is
// judged by how long it has been seen unchanged, never by its times. Pure; thread safety: none.
class Election {
 public:
  Election(ElectionOptions options, std::uint64_t seed)
      : options_(std::move(options)), rng_(seed) {}

  // now: of the monotonic clock; wall: what is written into the lease.
  [[nodiscard]] Want next(Instant now, WallTime wall);
  // What came of the request that next() wanted; sent_at: when it was asked for.
  void on_answer(Instant sent_at, Instant now, const client::Answer<object::Value>& answer);

  [[nodiscard]] bool is_leader() const { return leads_until_.has_value(); }
  // Until when this process may act as the leader: by then it gives up, and other candidates are
  // still waiting. Nothing: it does not lead.
  [[nodiscard]] std::optional<Instant> leads_until() const { return leads_until_; }
  [[nodiscard]] bool still_leads(Instant now) const { return leads_until_ && now < *leads_until_; }
  [[nodiscard]] const object::Key& lease() const { return options_.lease; }
  // Who holds the lease, as far as is known; empty: nobody.
  [[nodiscard]] std::string holder() const;
  // Renewals that needed more than one request.
  [[nodiscard]] std::size_t slow_paths() const { return slow_paths_; }

  // The lease as it is written on a clean stop, by which others need not wait; nothing if this
  // process does not lead. Work must have ended before.
  [[nodiscard]] std::optional<object::Value> released(WallTime wall) const;
  // Writing it met another version; the lease as it is.
  void on_conflict(Instant now, const client::Answer<object::Value>& lease);

 private:
  enum class Step { Idle, Renewing, Reading, Creating, Taking };

  Want start(Instant now, WallTime wall);
  [[nodiscard]] object::Value record(WallTime wall) const;
  void observe(Instant now, const object::Value& lease);
  void on_read(Instant now, const client::Answer<object::Value>& answer);
  void on_written(Instant sent_at, Instant now, const client::Answer<object::Value>& answer);
  void rest(Instant now);
  [[nodiscard]] bool is_ours() const;

  const ElectionOptions options_;
  Rng rng_;
  Step step_ = Step::Idle;
  Instant not_before_{};
  std::optional<object::Value> observed_;  // the lease as it was last seen
  Instant observed_at_{};                  // when that was first seen
  std::optional<Instant> leads_until_;
  bool has_lost_ = false;
  std::size_t slow_paths_ = 0;
};

}  // namespace sightline::election
