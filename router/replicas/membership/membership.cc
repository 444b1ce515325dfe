// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/membership.h"

#include <array>
#include <optional>
#include <stop_token>
#include <utility>
#include <variant>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/contract/metrics_replicas.h"
#include "common/contract/subjects.h"
#include "common/runtime/worker_thread.h"

namespace sightline::membership {
namespace {

// All processes of a large deployment may announce themselves at the same moment. Each does so only
// a few times.
constexpr nats::Inbox::Limits kInboxLimits{.messages_max = 8192, .bytes_max = 16U << 20U};

std::string subject_of(const Announcement& a) {
  return contract::Subjects(a.scope, a.revision).members();
}

std::string_view word_of(MemberChange::Kind kind) {
  switch (kind) {
    case MemberChange::Kind::Joined:
      return "member joined";
    case MemberChange::Kind::Changed:
      return "member changed";
    case MemberChange::Kind::Left:
      return "member left";
    case MemberChange::Kind::Silent:
      return "member timed out";
  }
  return "member changed";
}

void tell(const MemberChange& change) {
  const Announcement& told = change.member.told;
  const bool is_there =
      change.kind == MemberChange::Kind::Joined || change.kind == MemberChange::Kind::Changed;
  const auto& unfit = change.member.unfit;
  // During a rollout two revisions run side by side, which is no mistake.
  const bool is_wrong = is_there && unfit && unfit->difference != Difference::Revision;
  std::vector<LogField> fields{{"role", name_of(told.role)},
                               {"member", told.name},
                               {"revision", told.revision},
                               {"address", told.admin_address}};
  // After a member has left, it does not matter whether it fits.
  if (is_there) fields.emplace_back("fits", !unfit);
  if (is_there && unfit) fields.emplace_back("reason", unfit->reason);
  log(is_wrong ? LogLevel::Warn : LogLevel::Info, word_of(change.kind), fields);
}

}  // namespace

struct Membership::State {
  State(const Announcement& mine, const Deps& deps, MemberExchangeOptions options)
      : connection(deps.connection),
        metrics(deps.metrics),
        clock(deps.clock),
        subjects(mine.scope, mine.revision),
        inbox(std::make_shared<nats::Inbox>(kInboxLimits)),
        exchange(mine, subject_of, deps.sealer, options) {}

  nats::Connection& connection;
  runtime::Metrics& metrics;
  const Clock& clock;
  const contract::Subjects subjects;
  const std::shared_ptr<nats::Inbox> inbox;
  std::optional<WorkerThread> thread;

  mutable Mutex mutex;
  MemberExchange exchange SL_GUARDED_BY(mutex);

  // Counted so far. Only the thread uses them.
  std::uint64_t malformed = 0;
  std::uint64_t beyond_room = 0;
  std::uint64_t unproven = 0;
  std::uint64_t repeated = 0;

  void run(const std::stop_token& stop) {
    connection.subscribe(subjects.all_members(), inbox);
    // A turn that runs out of memory may lose an announcement. The next one repeats it.
    while (!stop.stop_requested()) {
      run_step([this] {
        const auto event = inbox->take(due());
        if (event) take(*event);
        act(take_turn());
      });
    }
    connection.unsubscribe(subjects.all_members(), inbox);
    // After the last turn, so no announcement follows the farewell.
    connection.publish(subjects.members(), farewell());
  }

  void take(const nats::Event& event) {
    const MutexLock lock(mutex);
    if (const auto* message = std::get_if<nats::Message>(&event)) {
      exchange.hear(message->subject, message->payload, clock.now());
    } else if (std::holds_alternative<nats::Connected>(event)) {
      exchange.connected(clock.now());
    }
    // A lost announcement is repeated by the next one.
  }

  Instant due() const {
    const MutexLock lock(mutex);
    return exchange.due();
  }
  MemberExchange::Actions take_turn() {
    const MutexLock lock(mutex);
    return exchange.turn(clock.now());
  }
  std::string farewell() {
    const MutexLock lock(mutex);
    return exchange.farewell();
  }

  void act(const MemberExchange::Actions& turn) {
    if (turn.announcement) connection.publish(subjects.members(), *turn.announcement);
    for (const MemberChange& change : turn.changes) tell(change);
    if (turn.changes_left_out > 0) {
      log(LogLevel::Warn, "too many member changes: some are not logged",
          {{"left_out", turn.changes_left_out}});
    }
    // Each announcement comes with a look for silent members, which leave without an announcement.
    if (turn.announcement || !turn.changes.empty()) count();
  }

  void count() {
    std::array<std::size_t, kRoleCount> fit{};
    std::array<std::size_t, kDifferences.size()> unfit{};
    std::uint64_t malformed_now = 0;
    std::uint64_t beyond_now = 0;
    std::uint64_t unproven_now = 0;
    std::uint64_t repeated_now = 0;
    {
      const MutexLock lock(mutex);
      fit = exchange.members().fit_counts();
      unfit = exchange.members().unfit_counts();
      malformed_now = exchange.malformed_total();
      beyond_now = exchange.members().refused_total();
      unproven_now = exchange.unproven_total();
      repeated_now = exchange.members().repeated_total();
    }
    // The metrics are set without the lock. So others wait less for it.
    for (const Role role : {Role::Router, Role::Frontend, Role::Agent}) {
      metrics.gauge(contract::kReplicaMembers, {name_of(role)})
          .set(static_cast<double>(fit.at(static_cast<std::size_t>(role))));
    }
    for (const Difference difference : kDifferences) {
      metrics.gauge(contract::kReplicaMembersUnfit, {name_of(difference)})
          .set(static_cast<double>(unfit.at(static_cast<std::size_t>(difference))));
    }
    const auto refused = [this](std::string_view reason, std::uint64_t more) {
      metrics.counter(contract::kReplicaMembersRefusedTotal, {reason})
          .add(static_cast<double>(more));
    };
    refused("malformed", malformed_now - std::exchange(malformed, malformed_now));
    refused("members-max", beyond_now - std::exchange(beyond_room, beyond_now));
    refused("unproven", unproven_now - std::exchange(unproven, unproven_now));
    refused("repeated", repeated_now - std::exchange(repeated, repeated_now));
  }
};

Membership::Membership(const Announcement& mine, const Deps& deps, MemberExchangeOptions options)
    : state_(std::make_unique<State>(mine, deps, options)) {
  state_->thread.emplace("sl-members",
                         [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

Membership::~Membership() { stop(); }

void Membership::update(const std::function<void(Announcement&)>& change) {
  {
    const MutexLock lock(state_->mutex);
    Announcement mine = state_->exchange.members().mine();
    change(mine);
    state_->exchange.set_mine(std::move(mine), state_->clock.now());
  }
  state_->inbox->wake();
}

Announcement Membership::mine() const {
  const MutexLock lock(state_->mutex);
  return state_->exchange.members().mine();
}

std::vector<Member> Membership::members() const {
  const MutexLock lock(state_->mutex);
  std::vector<Member> all;
  for (const auto& [instance, member] : state_->exchange.members().all()) all.push_back(member);
  return all;
}

std::set<std::uint64_t> Membership::generations() const {
  const MutexLock lock(state_->mutex);
  std::set<std::uint64_t> generations;
  for (const auto& [instance, member] : state_->exchange.members().all()) {
    const bool counts = !member.unfit && member.told.role == Role::Router;
    if (counts) generations.insert(member.told.generation);
  }
  return generations;
}

std::string Membership::json() const {
  const MutexLock lock(state_->mutex);
  return state_->exchange.members().json(state_->clock.now());
}

void Membership::stop() {
  if (!state_->thread) return;
  state_->thread->request_stop();
  state_->inbox->wake();
  state_->thread->join();
  state_->thread.reset();
}

}  // namespace sightline::membership
