// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/routers/patient_router_admin.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/fakes/manual_clock.h"

namespace sightline::routers {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Each host takes its time. Then it answers or not.
class Hosts : public RouterAdmin {
 public:
  explicit Hosts(test::ManualClock& clock) : clock_(clock) {}

  Result<judge::RouterAnswers> ask(const Address& router) override {
    ++calls;
    if (meanwhile) std::exchange(meanwhile, {})();
    clock_.advance(takes);
    if (router.host == "well") return judge::RouterAnswers{};
    return worker_error(ErrorCode::Unavailable, "no answer in time", true);
  }
  Result<std::map<std::string, std::string>> settings(const Address& process) override {
    auto answers = ask(process);
    if (!answers.ok()) return std::move(answers).error();
    return std::map<std::string, std::string>();
  }
  Result<Done> put(const Address& router, const std::string&, const object::Value&) override {
    auto answers = ask(router);
    if (!answers.ok()) return std::move(answers).error();
    return Done{};
  }

  int calls = 0;
  Duration takes = seconds(2);
  std::function<void()> meanwhile;

 private:
  test::ManualClock& clock_;
};

class PatientRouterAdminTest : public testing::Test {
 protected:
  int calls_of(const std::function<void()>& action) {
    const int before = hosts_.calls;
    action();
    return hosts_.calls - before;
  }
  int asked(const std::string& host) {
    return calls_of([&] { static_cast<void>(admin_.ask({host, {}})); });
  }

  test::ManualClock clock_;
  Hosts hosts_{clock_};
  PatientRouterAdmin admin_{{}, hosts_, clock_};
};

TEST_F(PatientRouterAdminTest, PausesASilentProcessAndKeepsTheReason) {
  EXPECT_EQ(asked("dead"), 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(asked("dead"), 0);
  const auto again = admin_.ask({"dead", {}});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().message, "no answer in time");
  EXPECT_FALSE(admin_.put({"dead", {}}, "/v1/settings", object::Value()).ok());
  EXPECT_FALSE(admin_.settings({"dead", {}}).ok());
  EXPECT_EQ(hosts_.calls, 1);
  EXPECT_EQ(asked("well"), 1) << "others are not";
}

TEST_F(PatientRouterAdminTest, IsTriedAfterLongerAndLongerTimesUpToAMinute) {
  asked("dead");
  for (const int wait : {5, 10, 20, 40, 60, 60}) {
    clock_.advance(seconds(wait) - milliseconds(1));
    EXPECT_EQ(asked("dead"), 0) << wait;
    clock_.advance(milliseconds(1));
    EXPECT_EQ(asked("dead"), 1) << wait;
  }
}

TEST_F(PatientRouterAdminTest, OneThatRefusesAtOnceIsAskedAsEver) {
  hosts_.takes = milliseconds(1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(asked("starting"), 1);
  EXPECT_EQ(admin_.silent(), 0U);
}

TEST_F(PatientRouterAdminTest, AnAnswerEndsIt) {
  asked("dead");
  clock_.advance(seconds(5));
  hosts_.takes = milliseconds(1);
  EXPECT_EQ(asked("dead"), 1) << "it refuses: it is there";
  EXPECT_EQ(asked("dead"), 1);
}

TEST_F(PatientRouterAdminTest, OfThoseThatWereSilentOneAtATimeIsTried) {
  asked("dead");
  asked("gone");
  clock_.advance(seconds(10));
  hosts_.meanwhile = [&] { EXPECT_EQ(asked("gone"), 0); };
  EXPECT_EQ(asked("dead"), 1);
  EXPECT_EQ(asked("gone"), 1);
}

TEST_F(PatientRouterAdminTest, ForgetsProcessesThatAreNotCalled) {
  for (int i = 0; i < 100; ++i) {
    asked("pod-" + std::to_string(i));
    clock_.advance(minutes(3));
  }
  EXPECT_LE(admin_.silent(), 2U);
}

}  // namespace
}  // namespace sightline::routers
