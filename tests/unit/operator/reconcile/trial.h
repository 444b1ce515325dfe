// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/runtime/metrics.h"

#include "operator/crd/status.h"
#include "operator/reconcile/reconciler.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/manual_clock.h"
#include "tests/unit/operator/reconcile/fake_cluster.h"

namespace sightline::reconcile {

// One MultimodalRouter "shop" in namespace "prod", its operator and a cluster.
class Trial {
 public:
  explicit Trial(object::Value spec = smallest_spec());

  ~Trial();

  // A model and one pool of two simulators, with the API server's defaults.
  static object::Value smallest_spec();

  // One reconciliation, after the caches have all writes. Then one step of the cluster.
  void tick();
  // Ticks until nothing changes. Returns the number of ticks. Fails the test after 300.
  int settle();
  // A check that must hold after each tick.
  std::function<void()> always;

  // A new spec, as a user applies it.
  void change(const std::function<void(object::Value& spec)>& edit);
  void remove();
  // The operator ends, and another one starts.
  void restart_operator();
  void wait_for_caches() const;
  client::Answer<std::optional<Duration>> reconcile();

  [[nodiscard]] crd::Status status() const;
  [[nodiscard]] std::string condition(const std::string& type) const;  // "True Reason"
  [[nodiscard]] std::vector<std::string> names(const object::Resource& resource) const;

  // The reconciler's clock. A tick takes one second.
  test::ManualClock clock;
  fakes::FakeApiServer server;
  FakeCluster cluster{server};

 private:
  struct Operator;
  void start_operator();

  runtime::Metrics metrics_;
  std::unique_ptr<Operator> operator_;
};

}  // namespace sightline::reconcile
