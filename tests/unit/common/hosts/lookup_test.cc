// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/hosts/lookup.h"

#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/fakes/manual_clock.h"

namespace sightline::hosts {
namespace {

using std::chrono::seconds;
using test::ManualClock;

Resolved good(const std::string& address) { return {{asio::ip::make_address(address)}}; }
const Resolved kUnknown{{}, LookupFailure::Unknown};
const Resolved kUnanswered{{}, LookupFailure::Unanswered};

// Name servers that answer when the test says.
class LookupTest : public testing::Test {
 protected:
  LookupTest() { make({}); }
  void make(const Lookup::Options& options) {
    auto ask = [this](const std::string& name, Lookup::Done done) {
      ++asked_[name];
      open_[name] = std::move(done);
    };
    names_ = std::make_unique<Lookup>(options, ask, clock_, &metrics_);
  }
  Lookup::LookupState find(const std::string& name) {
    return names_->find(name,
                        [this, name](const Resolved& found) { told_.emplace_back(name, found); });
  }
  void answer(const std::string& name, const Resolved& found) {
    auto done = std::move(open_.at(name));
    open_.erase(name);
    done(found);
  }
  // The addresses known without a look-up. The test fails if a look-up is needed.
  Resolved known(const std::string& name) {
    const auto answer = find(name);
    EXPECT_FALSE(answer.asked_at) << name;
    return answer.found;
  }
  void learn(const std::string& name, const Resolved& found) {
    ASSERT_TRUE(find(name).asked_at);
    answer(name, found);
  }

  ManualClock clock_;
  runtime::Metrics metrics_;
  std::map<std::string, int> asked_;
  std::map<std::string, Lookup::Done> open_;
  std::vector<std::pair<std::string, Resolved>> told_;
  std::unique_ptr<Lookup> names_;
};

TEST_F(LookupTest, SmallerAgeLimitLooksUpSooner) {
  learn("routers", good("10.0.0.1"));
  clock_.advance(seconds(2));
  EXPECT_FALSE(find("routers").asked_at);
  const auto answer = names_->find(
      "routers", [](const Resolved&) {}, seconds(1));
  EXPECT_TRUE(answer.asked_at);
  EXPECT_EQ(answer.found.addresses.size(), 1U) << "until then the last ones are told";
  this->answer("routers", good("10.0.0.2"));
  EXPECT_EQ(known("routers").addresses, good("10.0.0.2").addresses);
  EXPECT_EQ(asked_["routers"], 2);
}

TEST_F(LookupTest, NumericAddressesAreKnownAtOnce) {
  for (const std::string address : {"10.0.0.7", "fd00::7", "::1"}) {
    const auto found = known(address);
    ASSERT_EQ(found.addresses.size(), 1U);
    EXPECT_EQ(found.addresses[0].to_string(), address);
  }
  EXPECT_TRUE(asked_.empty());
}

TEST_F(LookupTest, CallersShareALookUpAndNamesDoNotWait) {
  const auto first = find("a");
  clock_.advance(seconds(1));
  EXPECT_EQ(find("a").asked_at, first.asked_at);
  find("b");
  EXPECT_EQ(asked_["a"], 1);
  answer("b", good("10.0.0.2"));
  ASSERT_EQ(told_.size(), 1U);
  answer("a", good("10.0.0.1"));
  ASSERT_EQ(told_.size(), 3U);
  EXPECT_EQ(told_[2].second.addresses, good("10.0.0.1").addresses);
}

TEST_F(LookupTest, AddressesAreReusedForAWhile) {
  learn("a", good("10.0.0.1"));
  clock_.advance(seconds(9));
  EXPECT_EQ(known("a").addresses, good("10.0.0.1").addresses);
  clock_.advance(seconds(1));
  const auto answer = find("a");
  EXPECT_TRUE(answer.asked_at);
  EXPECT_EQ(answer.found.addresses, good("10.0.0.1").addresses);
  EXPECT_EQ(asked_["a"], 2);
}

TEST_F(LookupTest, WithoutAnAnswerTheLastGoodAddressesStay) {
  learn("a", good("10.0.0.1"));
  clock_.advance(seconds(10));
  learn("a", kUnanswered);
  EXPECT_EQ(told_.back().second.addresses, good("10.0.0.1").addresses);
  EXPECT_EQ(known("a").addresses, good("10.0.0.1").addresses);
  EXPECT_EQ(known("a").trouble, LookupFailure::Unanswered);
  clock_.advance(seconds(1));
  learn("a", good("10.0.0.9"));
  EXPECT_EQ(known("a").addresses, good("10.0.0.9").addresses);
  EXPECT_EQ(known("a").trouble, LookupFailure::None);
}

TEST_F(LookupTest, TheAddressesOfANameThatIsGoneAreForgotten) {
  learn("a", good("10.0.0.1"));
  clock_.advance(seconds(10));
  learn("a", kUnknown);
  EXPECT_TRUE(told_.back().second.addresses.empty());
  clock_.advance(seconds(1));
  learn("a", kUnanswered);
  EXPECT_TRUE(known("a").addresses.empty());
}

TEST_F(LookupTest, AFailureIsTriedAgainWithBackOff) {
  for (const int wait_s : {1, 2, 4, 8, 10, 10}) {
    learn("a", kUnanswered);
    clock_.advance(seconds(wait_s) - std::chrono::milliseconds(1));
    EXPECT_EQ(known("a").trouble, LookupFailure::Unanswered);
    clock_.advance(std::chrono::milliseconds(1));
  }
  learn("a", good("10.0.0.1"));
  clock_.advance(seconds(10));
  learn("a", kUnknown);
  clock_.advance(seconds(1));
  EXPECT_TRUE(find("a").asked_at);
}

TEST_F(LookupTest, FullTableDropsTheLongestUnusedIdleName) {
  make({.names_max = 2});
  find("hangs");
  clock_.advance(seconds(1));
  learn("a", good("10.0.0.1"));
  learn("b", good("10.0.0.2"));
  EXPECT_TRUE(find("a").asked_at);  // it has no entry, because b has the only one
  EXPECT_EQ(known("c").trouble, LookupFailure::Unanswered);
  EXPECT_NE(metrics_.scrape().find("limit_hits_total{limit=\"names-max\"} 1"), std::string::npos);
  answer("hangs", kUnanswered);
  EXPECT_TRUE(find("c").asked_at);
}

TEST_F(LookupTest, WaitersAreLimited) {
  make({.waiting_max = 2});
  find("a");
  find("b");
  EXPECT_EQ(known("a").trouble, LookupFailure::Unanswered);
  answer("b", good("10.0.0.2"));
  EXPECT_TRUE(find("a").asked_at);
}

TEST_F(LookupTest, StopPreventsCallbacks) {
  find("a");
  names_->stop();
  answer("a", good("10.0.0.1"));
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(known("b").trouble, LookupFailure::Unanswered);
  EXPECT_EQ(asked_.count("b"), 0U);
}

TEST_F(LookupTest, ALookUpMayEndBeforeItsBeginningReturns) {
  Lookup names(
      {}, [](const std::string&, const Lookup::Done& done) { done(good("10.0.0.1")); }, clock_,
      nullptr);
  int calls = 0;
  names.find("a", [&](const Resolved&) { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(names.find("a", nullptr).asked_at);
}

// The name is in /etc/hosts, so no name server is asked.
TEST(Servers, LocalhostIsFoundAndTheEndWaitsForNoAnswer) {
  Lookup names(system_clock());
  std::promise<Resolved> told;
  names.find("localhost", [&](const Resolved& found) { told.set_value(found); });
  const auto found = told.get_future().get();
  ASSERT_FALSE(found.addresses.empty());
  EXPECT_TRUE(found.addresses[0].is_loopback());
  names.find("a.name.that.nobody.answers.for.test", [](const Resolved&) {});
}

}  // namespace
}  // namespace sightline::hosts
