// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/election/election.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "operator/kube/object/metadata.h"
#include "tests/fakes/fake_api_server.h"

namespace sightline::election {
namespace {

using client::Answer;
using client::Reason;
using object::Value;
using std::chrono::milliseconds;
using std::chrono::seconds;

const object::Key kLease{"system", "mmr"};

ElectionOptions options_of(const std::string& identity) {
  return {.lease = kLease, .identity = identity};
}

// A candidate with its own time, against a fake server.
class Candidate {
 public:
  Candidate(const std::string& identity, fakes::FakeApiServer& server, std::uint64_t seed)
      : server_(server), election_(options_of(identity), seed) {}

  // Does what the election wants, until it wants to wait. Returns whether it has lost.
  bool act(Instant now) {
    for (int i = 0; i < 8; ++i) {
      const Want want = election_.next(now, WallTime(now.time_since_epoch()));
      if (std::holds_alternative<Lost>(want)) return true;
      if (std::holds_alternative<WantWait>(want)) return false;
      election_.on_answer(now, now, answer(want));
    }
    ADD_FAILURE() << "it never waits";
    return false;
  }
  [[nodiscard]] bool leads(Instant now) const { return election_.still_leads(now); }
  Election& election() { return election_; }
  bool is_cut_off = false;

 private:
  Answer<Value> answer(const Want& want) {
    if (is_cut_off) return fakes::api_failure(Reason::Unreachable, "cut off");
    if (const auto* create = std::get_if<WantCreate>(&want)) {
      return server_.create(lease_resource(), create->lease);
    }
    if (const auto* update = std::get_if<WantUpdate>(&want)) {
      return server_.update(lease_resource(), update->lease);
    }
    return server_.get(lease_resource(), kLease);
  }

  fakes::FakeApiServer& server_;
  Election election_;
};

constexpr Instant kStart{std::chrono::hours(1)};

Value lease_of(const fakes::FakeApiServer& server) {
  return server.find(lease_resource(), kLease).value_or(Value());
}

TEST(Election, FirstCandidateCreatesAndRenewsTheLease) {
  fakes::FakeApiServer server;
  Candidate a("a", server, 1);
  EXPECT_FALSE(a.act(kStart));
  EXPECT_TRUE(a.leads(kStart));
  EXPECT_FALSE(a.leads(kStart + seconds(10)));
  const Value lease = lease_of(server);
  EXPECT_EQ(lease.at({"spec", "holderIdentity"}).text(), "a");
  EXPECT_EQ(lease.at({"spec", "leaseDurationSeconds"}).integer(), 15);
  EXPECT_EQ(lease.at({"spec", "leaseTransitions"}).integer(), 0);
  EXPECT_EQ(lease.at({"spec", "renewTime"}).text(), "1970-01-01T01:00:00.000000Z");
  const std::size_t calls = server.calls().size();
  EXPECT_FALSE(a.act(kStart + seconds(2)));
  EXPECT_EQ(server.calls().size(), calls + 1);
  EXPECT_TRUE(a.leads(kStart + seconds(11)));
}

TEST(Election, TakesOverOnlyAfterSeeingTheLeaseUnchanged) {
  fakes::FakeApiServer server;
  Candidate a("a", server, 1);
  Candidate b("b", server, 2);
  EXPECT_FALSE(a.act(kStart));
  Instant now = kStart;
  while (!b.leads(now) && now < kStart + seconds(60)) {
    now += milliseconds(100);
    EXPECT_FALSE(b.act(now));
  }
  EXPECT_GE(now - kStart, seconds(15));
  EXPECT_LE(now - kStart, seconds(20));
  EXPECT_EQ(lease_of(server).at({"spec", "leaseTransitions"}).integer(), 1);
  EXPECT_EQ(lease_of(server).at({"spec", "holderIdentity"}).text(), "b");
}

TEST(Election, DisconnectedLeaderResignsBeforeOthersTakeOver) {
  fakes::FakeApiServer server;
  Candidate a("a", server, 1);
  EXPECT_FALSE(a.act(kStart));
  a.is_cut_off = true;
  bool has_lost = false;
  Instant now = kStart;
  while (!has_lost && now < kStart + seconds(60)) {
    now += milliseconds(100);
    has_lost = a.act(now);
  }
  EXPECT_EQ(now - kStart, seconds(10));
  EXPECT_FALSE(a.leads(now));
  EXPECT_TRUE(a.act(now + seconds(100))) << "once lost, for ever";
}

TEST(Election, ALeaderThatWasHeldUpLosesWithoutAskingAnybody) {
  fakes::FakeApiServer server;
  Candidate a("a", server, 1);
  EXPECT_FALSE(a.act(kStart));
  const std::size_t calls = server.calls().size();
  EXPECT_FALSE(a.leads(kStart + seconds(20)));
  EXPECT_TRUE(a.act(kStart + seconds(20)));
  EXPECT_EQ(server.calls().size(), calls);
}

TEST(Election, RenewalReadsAChangedLeaseAndContinues) {
  fakes::FakeApiServer server;
  Candidate a("a", server, 1);
  EXPECT_FALSE(a.act(kStart));
  Value meddled = lease_of(server);
  meddled.set({"metadata", "labels", "x"}, "y");
  server.put(lease_resource(), meddled);
  EXPECT_FALSE(a.act(kStart + seconds(2)));
  EXPECT_TRUE(a.leads(kStart + seconds(11)));
  EXPECT_EQ(a.election().slow_paths(), 1U);
  EXPECT_EQ(object::label_of(lease_of(server), "x"), "y");
}

TEST(Election, AReleasedLeaseIsTakenAtOnce) {
  fakes::FakeApiServer server;
  Candidate a("a", server, 1);
  Candidate b("b", server, 2);
  EXPECT_FALSE(a.act(kStart));
  EXPECT_FALSE(b.act(kStart));
  const auto released = a.election().released(WallTime(kStart.time_since_epoch()));
  ASSERT_TRUE(released);
  ASSERT_TRUE(server.update(lease_resource(), *released).ok());
  EXPECT_FALSE(b.act(kStart + seconds(5)));
  EXPECT_TRUE(b.leads(kStart + seconds(5)));
  EXPECT_FALSE(b.election().released(WallTime()) == std::nullopt);
}

TEST(Election, SettingsThatCannotWorkAreRefused) {
  ElectionOptions options = options_of("a");
  EXPECT_TRUE(check(options).ok());
  options.renew_deadline = options.lease_duration;
  EXPECT_FALSE(check(options).ok());
  options = options_of("a");
  options.retry_period = seconds(9);
  EXPECT_FALSE(check(options).ok());
  EXPECT_FALSE(check(options_of("")).ok());
}

// Three candidates for ten minutes. At random, requests fail and candidates pause. Returns how
// often the leader changed.
std::size_t lead_in_turns(std::uint64_t seed) {
  std::size_t changes = 0;
  Rng rng(seed);
  fakes::FakeApiServer server;
  server.before = [&](const fakes::Call&) -> std::optional<client::Failure> {
    if (rng.below(8) != 0) return std::nullopt;
    return fakes::api_failure(Reason::InternalError, "trouble");
  };
  server.after = [&](const fakes::Call&) -> std::optional<client::Failure> {
    if (rng.below(8) != 0) return std::nullopt;
    return fakes::api_failure(Reason::Unreachable, "answer lost");
  };
  std::vector<std::unique_ptr<Candidate>> candidates;
  std::vector<Instant> held_until(3, kStart);
  for (int i = 0; i < 3; ++i) {
    candidates.push_back(
        std::make_unique<Candidate>("c" + std::to_string(i), server, seed * 3 + 1));
  }
  int leader = -1;
  for (Instant now = kStart; now < kStart + seconds(600); now += milliseconds(500)) {
    std::vector<int> leaders;
    for (int i = 0; i < 3; ++i) {
      auto& candidate = candidates.at(static_cast<std::size_t>(i));
      auto& held = held_until.at(static_cast<std::size_t>(i));
      if (rng.below(100) == 0) held = now + seconds(rng.below(30));
      candidate->is_cut_off = rng.below(4) == 0;
      if (now >= held && candidate->act(now)) {
        // Its process ends, and another one starts.
        candidate = std::make_unique<Candidate>(
            "c" + std::to_string(i) + std::to_string(rng.next()), server, rng.next());
      }
      if (candidate->leads(now)) leaders.push_back(i);
    }
    EXPECT_LE(leaders.size(), 1U) << "seed " << seed;
    if (!leaders.empty() && leaders.front() != leader) {
      leader = leaders.front();
      ++changes;
    }
  }
  return changes;
}

TEST(Election, NeverDoTwoCandidatesLead) {
  std::size_t changes = 0;
  for (std::uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) changes += lead_in_turns(seed);
  EXPECT_GT(changes, 200U);
}

}  // namespace
}  // namespace sightline::election
