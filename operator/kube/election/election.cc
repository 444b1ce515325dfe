// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/election/election.h"

#include <chrono>
#include <utility>

#include "operator/kube/object/metadata.h"
#include "operator/kube/object/timestamp.h"
#include "operator/kube/pace/backoff.h"

namespace sightline::election {

using client::Answer;
using client::Reason;
using object::Value;

namespace {

constexpr double kJitter = 1.2;  // of waits for another holder's lease

std::int64_t seconds_of(Duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

std::string_view holder_of(const Value& lease) {
  return lease.at({"spec", "holderIdentity"}).text();
}

}  // namespace

Result<Done> check(const ElectionOptions& options) {
  const auto retry = std::chrono::duration<double>(options.retry_period) * kJitter;
  // With jitter a retry must still fit before the deadline.
  const bool is_ordered = options.lease_duration > options.renew_deadline &&
                          options.renew_deadline > retry && options.retry_period > Duration::zero();
  if (!is_ordered || options.lease_duration < std::chrono::seconds(1)) {
    return client_error(
        ErrorCode::InvalidArgument,
        "leader election: must have --lease-duration > --renew-deadline > 1.2 x --retry-period");
  }
  if (options.lease.name.empty() || options.identity.empty()) {
    return client_error(ErrorCode::InvalidArgument,
                        "leader election: the Lease and this process must have names");
  }
  return Done{};
}

const object::Resource& lease_resource() {
  static const object::Resource leases{"coordination.k8s.io", "v1", "leases", "Lease"};
  return leases;
}

std::string Election::holder() const {
  return observed_ ? std::string(holder_of(*observed_)) : std::string();
}

bool Election::is_ours() const { return observed_ && holder_of(*observed_) == options_.identity; }

Want Election::next(Instant now, WallTime wall) {
  if (has_lost_) return Lost{};
  // Asked before each step, so a leader that was paused notices its deadline first.
  if (leads_until_ && now >= *leads_until_) {
    leads_until_.reset();
    has_lost_ = true;
    return Lost{};
  }
  switch (step_) {
    case Step::Idle:
      if (now < not_before_) return WantWait{not_before_};
      return start(now, wall);
    case Step::Renewing:
    case Step::Taking:
      return WantUpdate{record(wall)};
    case Step::Creating:
      return WantCreate{record(wall)};
    case Step::Reading:
      return WantGet{};
  }
  return WantGet{};
}

Want Election::start(Instant now, WallTime wall) {
  // A holder knows its lease, so one request renews it.
  step_ = leads_until_ && is_ours() ? Step::Renewing : Step::Reading;
  return next(now, wall);
}

// The lease with this process as its holder.
Value Election::record(WallTime wall) const {
  Value lease = observed_.value_or(Value::object());
  const bool is_new_holder = !is_ours();
  // The transition from no lease to the first is not counted, as in client-go.
  const std::int64_t transitions = lease.at({"spec", "leaseTransitions"}).integer().value_or(0) +
                                   (observed_ && is_new_holder ? 1 : 0);
  object::name_kind(lease, lease_resource());
  lease.set({"metadata", "name"}, options_.lease.name);
  lease.set({"metadata", "namespace"}, options_.lease.name_space);
  lease.set({"spec", "holderIdentity"}, options_.identity);
  lease.set({"spec", "leaseDurationSeconds"}, seconds_of(options_.lease_duration));
  lease.set({"spec", "renewTime"}, object::to_micro_timestamp(wall));
  if (is_new_holder) lease.set({"spec", "acquireTime"}, object::to_micro_timestamp(wall));
  lease.set({"spec", "leaseTransitions"}, transitions);
  return lease;
}

void Election::observe(Instant now, const Value& lease) {
  // Only the spec counts: other writers may change the metadata.
  if (!observed_ || (*observed_)["spec"] != lease["spec"]) observed_at_ = now;
  observed_ = lease;
}

void Election::rest(Instant now) {
  step_ = Step::Idle;
  // Jitter, so candidates do not all write at the same moment.
  not_before_ = now + (leads_until_ ? options_.retry_period
                                    : pace::jittered(options_.retry_period, kJitter, rng_));
}

void Election::on_answer(Instant sent_at, Instant now, const Answer<Value>& answer) {
  if (step_ == Step::Reading) return on_read(now, answer);
  on_written(sent_at, now, answer);
}

void Election::on_read(Instant now, const Answer<Value>& answer) {
  if (failed(answer, Reason::NotFound)) {
    observed_.reset();
    step_ = Step::Creating;
    return;
  }
  // A failed read shows nothing about the lease. A leader still leads until its deadline.
  if (!answer.ok()) return rest(now);
  observe(now, *answer);
  const bool is_held = !holder_of(*observed_).empty() && !is_ours();
  // The holder keeps the lease for its duration, from the time at which we saw it.
  const auto held_for = std::chrono::seconds(observed_->at({"spec", "leaseDurationSeconds"})
                                                 .integer()
                                                 .value_or(seconds_of(options_.lease_duration)));
  if (is_held && now < observed_at_ + held_for) {
    if (leads_until_) {
      // Another process took it, so this one must write nothing more.
      leads_until_.reset();
      has_lost_ = true;
    }
    return rest(now);
  }
  step_ = Step::Taking;
}

void Election::on_written(Instant sent_at, Instant now, const Answer<Value>& answer) {
  if (answer.ok()) {
    observe(now, *answer);
    // From the time of sending, not of the answer: others count from the earlier time.
    leads_until_ = sent_at + options_.renew_deadline;
    return rest(now);
  }
  // Another process or a lost answer may have changed the lease, so read it and try again.
  if (step_ == Step::Renewing) {
    ++slow_paths_;
    step_ = Step::Reading;
    return;
  }
  rest(now);
}

std::optional<Value> Election::released(WallTime wall) const {
  if (!leads_until_ || !is_ours()) return std::nullopt;
  Value lease = *observed_;
  lease.set({"spec", "holderIdentity"}, "");
  // A short duration lets others take the lease immediately, even if they ignore an empty holder.
  lease.set({"spec", "leaseDurationSeconds"}, 1);
  lease.set({"spec", "renewTime"}, object::to_micro_timestamp(wall));
  lease.set({"spec", "acquireTime"}, object::to_micro_timestamp(wall));
  return lease;
}

void Election::on_conflict(Instant now, const Answer<Value>& lease) {
  if (lease.ok()) observe(now, *lease);
}

}  // namespace sightline::election
