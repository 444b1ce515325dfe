// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/replica_stack.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/runtime/entropy.h"

#include "router/process/process_identity.h"

namespace sightline::process {
namespace {

envelope::SealScope seal_scope(const ReplicaStack::Options& options) {
  return {.scope = options.replica.scope,
          .revision = options.replica.revision,
          .fingerprint = options.model_digest + "\n" + options.scope_model};
}

std::int64_t seconds_since_1970() {
  const auto now = system_clock().wall().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

membership::Announcement announcement(const ReplicaStack::Options& options,
                                      const ReplicaStack& stack,
                                      const contract::IdentityKey& identity) {
  membership::Announcement mine;
  mine.role = options.role;
  mine.name = stack.name();
  mine.instance = stack.instance();
  mine.scope = options.replica.scope;
  mine.revision = options.replica.revision;
  mine.model_digest = options.model_digest;
  mine.served_model = options.scope_model;
  mine.key_check = membership::key_check_of(identity);
  // A build reads exactly one version of messages.
  mine.frames = {.min = envelope::kNewestVersion, .max = envelope::kNewestVersion};
  mine.started = seconds_since_1970();
  return mine;
}

}  // namespace

// The instance is never 0: in messages, 0 means that it is not known.
ReplicaStack::ReplicaStack(const Options& options, const Deps& deps)
    : instance_(std::max<std::uint64_t>(1, runtime::secure_random_u64())),
      name_(process_name(options.replica.name, options.port)),
      subjects_(options.replica.scope, options.replica.revision),
      sealer_(deps.identity, seal_scope(options)),
      members_sealer_(deps.identity,
                      // Without a revision: members of all revisions prove the key to each other.
                      {.scope = options.replica.scope, .revision = {}, .fingerprint = {}}) {}

ReplicaStack::~ReplicaStack() { stop(); }

Result<std::unique_ptr<ReplicaStack>> ReplicaStack::create(const Options& options,
                                                           const Deps& deps) {
  auto stack = std::make_unique<ReplicaStack>(options, deps);
  const auto connect = [&](nats::Sending sending) {
    return nats::Connection::create(
        {.settings = options.nats, .name = stack->name_, .sending = sending}, deps.metrics,
        deps.clock);
  };
  stack->control_ = SL_TRY(connect(nats::Sending::AtOnce));
  stack->events_ = SL_TRY(connect(nats::Sending::InBatches));
  stack->membership_ = std::make_unique<membership::Membership>(
      announcement(options, *stack, deps.identity),
      membership::Membership::Deps{.connection = *stack->control_,
                                   .sealer = stack->members_sealer_,
                                   .metrics = deps.metrics,
                                   .clock = deps.clock});
  return stack;
}

void ReplicaStack::stop() {
  if (membership_) membership_->stop();
}

}  // namespace sightline::process
