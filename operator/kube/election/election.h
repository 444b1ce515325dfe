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

// What a candidate is made with.
struct ElectionOptions {
  object::Key lease;
  // Of this process. Must differ from that of every other process.
  std::string identity;
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
};

// Errors: InvalidArgument unless lease_duration > renew_deadline > retry_period with jitter > 0,
// and lease and identity have names.
Result<Done> check(const ElectionOptions& options);

// The resource of Leases, coordination.k8s.io/v1.
[[nodiscard]] const object::Resource& lease_resource();

// What the candidate must do next.
struct WantGet {};
struct WantCreate {
  object::Value lease;
};
// Write the lease, with the resourceVersion that was read.
struct WantUpdate {
  object::Value lease;
};
// Wait until this time, then call next() again.
struct WantWait {
  Instant until{};
};
// It was the leader and is not any more: the process must end.
struct Lost {};
using Want = std::variant<WantGet, WantCreate, WantUpdate, WantWait, Lost>;

// One candidate for a Lease, by the rules of client-go. Whether another's lease has expired depends
// on how long it was seen unchanged, never on the times in it, because clocks differ. Pure.
// Thread safety: one thread at a time.
class Election {
 public:
  Election(ElectionOptions options, std::uint64_t seed)
      : options_(std::move(options)), rng_(seed) {}

  // `now` is monotonic time, `wall` is written into the lease.
  [[nodiscard]] Want next(Instant now, WallTime wall);
  // The answer to the request of next(). sent_at is when it was requested.
  void on_answer(Instant sent_at, Instant now, const client::Answer<object::Value>& answer);

  // Whether this process leads, as of the last answer.
  [[nodiscard]] bool is_leader() const { return leads_until_.has_value(); }
  // Until when this process may act as the leader. It gives up before other candidates stop
  // waiting. Nothing: it does not lead.
  [[nodiscard]] std::optional<Instant> leads_until() const { return leads_until_; }
  [[nodiscard]] bool still_leads(Instant now) const { return leads_until_ && now < *leads_until_; }
  [[nodiscard]] const object::Key& lease() const { return options_.lease; }
  // The known holder of the lease. Empty: no one holds it.
  [[nodiscard]] std::string holder() const;
  // The renewals that needed more than one request.
  [[nodiscard]] std::size_t slow_paths() const { return slow_paths_; }

  // The lease to write on a clean stop, which lets others take it without waiting. Nothing if this
  // process does not lead. All work must have ended before.
  [[nodiscard]] std::optional<object::Value> released(WallTime wall) const;
  // The write met another version: takes over the lease as it is.
  void on_conflict(Instant now, const client::Answer<object::Value>& lease);

 private:
  // The request under way. Idle: the next step waits for not_before_.
  enum class Step { Idle, Renewing, Reading, Creating, Taking };

  // Begins a round: a renewal for the leader, a read for other candidates.
  Want start(Instant now, WallTime wall);
  // The lease with this process as its holder.
  [[nodiscard]] object::Value record(WallTime wall) const;
  // Stores the lease. Notes the time if its spec has changed.
  void observe(Instant now, const object::Value& lease);
  // The answers to a read and to a write.
  void on_read(Instant now, const client::Answer<object::Value>& answer);
  void on_written(Instant sent_at, Instant now, const client::Answer<object::Value>& answer);
  // Ends a round and sets the time of the next.
  void rest(Instant now);
  // Whether this process is the holder of the lease as last seen.
  [[nodiscard]] bool is_ours() const;

  const ElectionOptions options_;
  Rng rng_;
  Step step_ = Step::Idle;
  Instant not_before_{};
  // The lease as last seen.
  std::optional<object::Value> observed_;
  // When this version was first seen.
  Instant observed_at_{};
  std::optional<Instant> leads_until_;
  bool has_lost_ = false;
  std::size_t slow_paths_ = 0;
};

}  // namespace sightline::election
