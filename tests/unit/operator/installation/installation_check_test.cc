// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/installation/installation_check.h"

#include <gtest/gtest.h>

#include "operator/kube/election/election.h"
#include "operator/owned/kinds.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/manual_clock.h"

namespace sightline::installation {
namespace {

using client::Failure;
using client::Reason;
using object::Value;

const object::Key kLease{"system", "sightline-operator"};

Value lease_renewed_at(const std::string& time, const std::string& holder = "pod-1") {
  Value lease = Value::object();
  lease.set({"apiVersion"}, "coordination.k8s.io/v1");
  lease.set({"kind"}, "Lease");
  lease.set({"metadata", "name"}, kLease.name);
  lease.set({"metadata", "namespace"}, kLease.name_space);
  lease.set({"spec", "holderIdentity"}, holder);
  lease.set({"spec", "renewTime"}, time);
  return lease;
}

class CheckTest : public testing::Test {
 protected:
  Result<Done> check() {
    return check_installation(
        {.name_spaces = name_spaces_, .lease = lease_, .time_max = std::chrono::seconds(60)},
        {.api = server_,
         .clock = clock_,
         .pause =
             [this](Duration time) {
               clock_.advance(time);
               ++pauses_;
               return on_pause_ ? on_pause_(pauses_) : true;
             },
         .said = [this](const std::string& line) { said_ += line + "\n"; }});
  }
  void hold_lease(const std::string& time, const std::string& holder = "pod-1") {
    server_.put(election::lease_resource(), lease_renewed_at(time, holder));
  }
  void renew_at(int pause, const std::string& time) {
    on_pause_ = [this, pause, time](int now) {
      if (now == pause) hold_lease(time);
      return true;
    };
  }

  std::vector<std::string> name_spaces_;
  object::Key lease_ = kLease;
  fakes::FakeApiServer server_;
  test::ManualClock clock_;
  std::function<bool(int)> on_pause_;
  int pauses_ = 0;
  std::string said_;
};

TEST_F(CheckTest, ALeaseThatIsRenewedProvesAnOperator) {
  hold_lease("2026-01-01T00:00:00.000000Z");
  renew_at(3, "2026-01-01T00:00:02.000000Z");
  const auto checked = check();
  ASSERT_TRUE(checked.ok()) << checked.error().message;
  EXPECT_EQ(pauses_, 3);
  EXPECT_NE(said_.find("ok: an operator leads: pod-1"), std::string::npos) << said_;
}

TEST_F(CheckTest, UnrenewedLeaseProvesNoOperator) {
  hold_lease("2026-01-01T00:00:00.000000Z");
  const auto checked = check();
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("has not renewed it"), std::string::npos);
  EXPECT_EQ(pauses_, 60);
}

TEST_F(CheckTest, WithoutALeaseItWaitsForAnOperator) {
  on_pause_ = [this](int now) {
    if (now == 2) hold_lease("2026-01-01T00:00:00.000000Z", "");
    return true;
  };
  const auto checked = check();
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(said_.find("no operator has taken the Lease system/sightline-operator yet"),
            std::string::npos);
  EXPECT_NE(checked.error().message.find("no operator holds the Lease"), std::string::npos);
}

TEST_F(CheckTest, WithoutAnElectionTheKindsAreEnough) {
  lease_ = {};
  ASSERT_TRUE(check().ok());
  EXPECT_NE(said_.find("leader election is off"), std::string::npos);
}

TEST_F(CheckTest, MissingKindsFailImmediatelyWithTheRemedy) {
  server_.before = [](const fakes::Call& call) -> std::optional<Failure> {
    if (call.verb != "list") return std::nullopt;
    Failure failure;
    failure.reason = Reason::NotFound;
    return failure;
  };
  const auto checked = check();
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("crds.enabled=true"), std::string::npos);
  EXPECT_EQ(pauses_, 0);
}

TEST_F(CheckTest, MissingRightsAreNotWaitedFor) {
  server_.before = [](const fakes::Call& call) -> std::optional<Failure> {
    if (call.verb != "get") return std::nullopt;
    Failure failure;
    failure.reason = Reason::Forbidden;
    failure.message = "cannot get leases";
    return failure;
  };
  const auto checked = check();
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("cannot get leases"), std::string::npos);
  EXPECT_EQ(pauses_, 0);
}

TEST_F(CheckTest, EachNamespaceHasToBeReadable) {
  name_spaces_ = {"one", "two"};
  server_.before = [](const fakes::Call& call) -> std::optional<Failure> {
    if (call.key.name_space != "two") return std::nullopt;
    Failure failure;
    failure.reason = Reason::Forbidden;
    failure.message = "not in two";
    return failure;
  };
  const auto checked = check();
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("not in two"), std::string::npos);
}

TEST_F(CheckTest, WaitsForASilentServerAndReportsEachTroubleOnce) {
  server_.before = [this](const fakes::Call&) -> std::optional<Failure> {
    if (pauses_ >= 5) return std::nullopt;
    Failure failure;
    failure.reason = Reason::ConnectionRefused;
    failure.message = "refused";
    return failure;
  };
  lease_ = {};
  ASSERT_TRUE(check().ok());
  EXPECT_EQ(pauses_, 5);
  EXPECT_EQ(said_.find("waiting:"), said_.rfind("waiting:"));
}

TEST_F(CheckTest, AStopEndsIt) {
  on_pause_ = [](int) { return false; };
  const auto checked = check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ErrorCode::Cancelled);
}

}  // namespace
}  // namespace sightline::installation
