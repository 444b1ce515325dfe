// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/identity_key.h"
#include "common/contract/process_settings.h"
#include "common/contract/subjects.h"
#include "common/nats/connection.h"
#include "common/runtime/metrics.h"

#include "router/replicas/envelope/envelope.h"
#include "router/replicas/membership/membership.h"

namespace sightline::process {

// What a process needs to be one of several: two connections to NATS, the seal for its messages,
// and the list of its peers.
// Thread safety: the getters from any thread, what they return as its class says, stop() from one
// thread.
class ReplicaStack {
 public:
  // What the process is.
  struct Options {
    // `urls` is not empty.
    contract::NatsSettings nats;
    contract::ReplicaSettings replica;
    membership::Role role = membership::Role::Router;
    // What block keys depend on: prepare::LoadedModel::files_digest, and the first served model
    // name.
    std::string model_digest;
    std::string scope_model;
    // The port that names the process if it has no name. 0: there is no port.
    std::uint16_t port = 0;
  };
  // The objects that it uses. All outlive it.
  struct Deps {
    // The key behind the seals.
    const contract::IdentityKey& identity;
    runtime::Metrics& metrics;
    const Clock& clock;
  };

  // Returns before the connections exist. Errors: InvalidArgument for settings that can never work.
  static Result<std::unique_ptr<ReplicaStack>> create(const Options& options, const Deps& deps);
  ReplicaStack(const Options& options, const Deps& deps);  // called by create()
  ~ReplicaStack();                                         // calls stop()
  ReplicaStack(const ReplicaStack&) = delete;
  ReplicaStack& operator=(const ReplicaStack&) = delete;

  // For requests, replies, load and members: each message is sent immediately.
  [[nodiscard]] nats::Connection& control() { return *control_; }
  // For frames of events: messages within a millisecond are sent together.
  [[nodiscard]] nats::Connection& events() { return *events_; }
  // Seals messages with scope, revision and fingerprint.
  [[nodiscard]] const envelope::Sealer& sealer() const { return sealer_; }
  // The NATS subjects of its scope and revision.
  [[nodiscard]] const contract::Subjects& subjects() const { return subjects_; }
  // The other processes of the scope.
  [[nodiscard]] membership::Membership& membership() { return *membership_; }
  // Random, drawn at the start, never 0.
  [[nodiscard]] std::uint64_t instance() const { return instance_; }
  // The process's name, for people.
  [[nodiscard]] const std::string& name() const { return name_; }

  // Announces the end of the process. Parts that use the connections must stop before the stack is
  // destroyed. May be called twice.
  void stop();

 private:
  const std::uint64_t instance_;
  const std::string name_;
  const contract::Subjects subjects_;
  const envelope::Sealer sealer_;
  const envelope::Sealer members_sealer_;  // of all revisions
  std::unique_ptr<nats::Connection> control_;
  std::unique_ptr<nats::Connection> events_;
  std::unique_ptr<membership::Membership> membership_;
};

}  // namespace sightline::process
