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

// What a process needs to be one of several: two connections to NATS, the seal on what it says
// there, and who else is there.
// Thread safety: the getters from any thread, what they give as each says; stop() from one.
class ReplicaStack {
 public:
  struct Options {
    contract::NatsSettings nats;  // `urls` is not empty
    contract::ReplicaSettings replica;
    membership::Role role = membership::Role::Router;
    // What block keys depend on: prepare::LoadedModel::files_digest, and the served name as it goes
    // into them.
    std::string model_digest;
    std::string scope_model;
    std::uint16_t port = 0;  // that the process is known by where it has no name; 0: none
  };
  // All outlive it.
  struct Around {
    const contract::IdentityKey& identity;
    runtime::Metrics& metrics;
    const Clock& clock;
  };

  // Returns before it is connected. Errors: InvalidArgument for settings that can never work.
  static Result<std::unique_ptr<ReplicaStack>> create(const Options& options, const Around& around);
  ReplicaStack(const Options& options, const Around& around);  // by create()
  ~ReplicaStack();                                             // as stop()
  ReplicaStack(const ReplicaStack&) = delete;
  ReplicaStack& operator=(const ReplicaStack&) = delete;

  // Questions, answers, load, members: each message leaves at once.
  [[nodiscard]] nats::Connection& control() { return *control_; }
  // Frames of events: what comes within a millisecond leaves together.
  [[nodiscard]] nats::Connection& events() { return *events_; }
  [[nodiscard]] const envelope::Sealer& sealer() const { return sealer_; }
  [[nodiscard]] const contract::Subjects& subjects() const { return subjects_; }
  [[nodiscard]] membership::Membership& membership() { return *membership_; }
  // Drawn at the start; never 0.
  [[nodiscard]] std::uint64_t instance() const { return instance_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  // Tells the others that the process leaves. What uses the connections is to be stopped before the
  // stack is destroyed. Idempotent.
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
