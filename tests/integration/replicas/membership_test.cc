// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/membership.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "common/base/log.h"
#include "common/contract/subjects.h"

#include "tests/support/eventually.h"
#include "tests/support/nats_server.h"

namespace sightline::membership {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::eventually;
using test::NatsServer;
using Names = std::vector<std::string>;

// No announcement is repeated within a test and no member becomes silent. So each message that
// arrives is an answer to something.
MemberExchangeOptions only_answers() {
  MemberExchangeOptions options;
  options.interval = hours(1);
  options.members.silent_after = hours(3);
  return options;
}

MemberExchangeOptions quick() {
  MemberExchangeOptions options;
  options.interval = milliseconds(100);
  options.pause = milliseconds(10);
  options.members.silent_after = seconds(1);
  return options;
}

Announcement announcement(const std::string& name) {
  static std::uint64_t instances = 0;
  Announcement a;
  a.role = Role::Router;
  a.name = name;
  a.instance = ++instances;
  a.scope = "default/default";
  a.revision = "0";
  a.model_digest = std::string(64, 'a');
  a.served_model = "m";
  a.block_size = 16;
  a.key_check = "0011223344556677";
  a.frames = {1, 1};
  a.admin_address = name + ":9090";
  return a;
}

const envelope::Sealer& sealer() {
  static const envelope::Sealer sealer(
      contract::development_identity_key(),
      {.scope = "default/default", .revision = {}, .fingerprint = {}});
  return sealer;
}

std::string subject_of(const Announcement& a) {
  return contract::Subjects(a.scope, a.revision).members();
}

// A connection of its own, as each process has.
struct Host {
  explicit Host(const NatsServer& server) {
    contract::NatsSettings settings;
    settings.urls = server.url();
    auto made = nats::Connection::create({settings, "test", nats::Sending::AtOnce}, metrics,
                                         system_clock());
    if (made.ok()) connection = std::move(*made);
  }
  [[nodiscard]] bool is_connected() const {
    return eventually([this] { return connection->connected(); });
  }
  // Announces as a process with the key does next.
  bool say(Announcement a) const {
    static std::uint64_t number = 0;
    a.number = ++number;
    return connection->publish(subject_of(a), encode(a, subject_of(a), sealer()));
  }
  bool forge(const Announcement& a) const { return connection->publish(subject_of(a), encode(a)); }
  // The value of a series `sightline_NAME{labels}`, -1 if it does not exist.
  [[nodiscard]] double value(const std::string& series) const {
    const std::string text = "\n" + metrics.scrape();
    const auto at = text.find("\nsightline_" + series + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(text.find("} ", at) + 2));
  }

  runtime::Metrics metrics;
  std::unique_ptr<nats::Connection> connection;
};

struct Process {
  Process(const NatsServer& server, const Announcement& mine, const MemberExchangeOptions& options)
      : host(server),
        membership(mine, {*host.connection, sealer(), host.metrics, system_clock()}, options) {}

  // The names of the others that fit, sorted.
  [[nodiscard]] Names fit() const {
    Names names;
    for (const Member& member : membership.members()) {
      if (!member.unfit) names.push_back(member.told.name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  [[nodiscard]] bool sees(const Names& names) const {
    return eventually([&] { return fit() == names; });
  }

  Host host;
  Membership membership;
};

TEST(Membership, MembersThatStartInTurnMeetWithoutAnInterval) {
  const NatsServer server;
  const Process a(server, announcement("a"), only_answers());
  ASSERT_TRUE(a.host.is_connected());
  const Process b(server, announcement("b"), only_answers());
  EXPECT_TRUE(a.sees({"b"}));
  EXPECT_TRUE(b.sees({"a"}));
  Announcement agent = announcement("c");
  agent.role = Role::Agent;
  const Process c(server, agent, only_answers());
  EXPECT_TRUE(a.sees({"b", "c"}));
  EXPECT_TRUE(b.sees({"a", "c"}));
  EXPECT_TRUE(c.sees({"a", "b"}));
  EXPECT_TRUE(eventually([&] {
    return a.host.value(R"(replica_members{role="router"})") == 1 &&
           a.host.value(R"(replica_members{role="agent"})") == 1;
  }));
}

TEST(Membership, MembersThatStartBeforeTheServerMeet) {
  NatsServer server;
  server.kill();
  const Process a(server, announcement("a"), only_answers());
  const Process b(server, announcement("b"), only_answers());
  const Process c(server, announcement("c"), only_answers());
  EXPECT_TRUE(a.fit().empty());
  server.start();
  EXPECT_TRUE(a.sees({"b", "c"}));
  EXPECT_TRUE(b.sees({"a", "c"}));
  EXPECT_TRUE(c.sees({"a", "b"}));
}

TEST(Membership, NamesAndCountsAMemberThatDoesNotFit) {
  const NatsServer server;
  const Process a(server, announcement("a"), only_answers());
  const Process good(server, announcement("good"), only_answers());
  struct Row {
    std::string difference;
    void (*change)(Announcement&);
    std::string theirs;
    std::string ours;
  };
  const std::vector<Row> rows = {
      {"revision", [](Announcement& x) { x.revision = "9"; }, "9", "0"},
      {"identity_key", [](Announcement& x) { x.key_check = "8899aabbccddeeff"; },
       "8899aabbccddeeff", "0011223344556677"},
      {"model", [](Announcement& x) { x.model_digest = std::string(64, 'b'); }, "bbbb", "aaaa"},
      {"block_size", [](Announcement& x) { x.block_size = 32; }, "32", "16"},
  };
  std::vector<std::unique_ptr<Process>> others;
  for (const Row& row : rows) {
    Announcement theirs = announcement(row.difference);
    row.change(theirs);
    others.push_back(std::make_unique<Process>(server, theirs, only_answers()));
  }
  ASSERT_TRUE(eventually([&] { return a.membership.members().size() == rows.size() + 1; }));
  EXPECT_EQ(a.fit(), Names{"good"});
  std::map<std::string, Member> by_name;
  for (const Member& member : a.membership.members()) by_name.emplace(member.told.name, member);
  for (const Row& row : rows) {
    const auto& unfit = by_name.at(row.difference).unfit;
    ASSERT_TRUE(unfit) << row.difference;
    EXPECT_EQ(name_of(unfit->difference), row.difference);
    EXPECT_NE(unfit->reason.find(row.theirs), std::string::npos) << unfit->reason;
    EXPECT_NE(unfit->reason.find(row.ours), std::string::npos) << unfit->reason;
    EXPECT_TRUE(eventually([&] {
      return a.host.value("replica_members_unfit{difference=\"" + row.difference + "\"}") == 1;
    })) << row.difference;
  }
  for (const auto& other : others) {
    EXPECT_TRUE(eventually([&] { return other->membership.members().size() == rows.size() + 1; }));
    EXPECT_TRUE(other->fit().empty()) << "they see it so as well";
  }
}

TEST(Membership, IgnoresMembersOfAnotherScope) {
  const NatsServer server;
  const Process a(server, announcement("a"), only_answers());
  const Host host(server);
  ASSERT_TRUE(a.host.is_connected());
  ASSERT_TRUE(host.is_connected());
  Announcement foreign = announcement("foreign");
  foreign.scope = "default/other";
  EXPECT_TRUE(host.say(foreign));
  EXPECT_TRUE(host.connection->publish(subject_of(announcement("x")), encode(foreign)));
  EXPECT_TRUE(host.say(announcement("last")));
  EXPECT_TRUE(a.sees({"last"}));
  EXPECT_EQ(a.membership.members().size(), 1U);
  EXPECT_TRUE(eventually(
      [&] { return a.host.value(R"(replica_members_refused_total{reason="malformed"})") == 1; }));
}

TEST(Membership, AStoppedMemberLeavesImmediately) {
  const NatsServer server;
  const Process a(server, announcement("a"), only_answers());
  Process b(server, announcement("b"), only_answers());
  ASSERT_TRUE(a.sees({"b"}));
  b.membership.stop();
  EXPECT_TRUE(a.sees({}));
  b.membership.stop();
}

TEST(Membership, ADeadMemberExpiresAfterTheSilenceLimit) {
  const NatsServer server;
  const MemberExchangeOptions options = quick();
  const Process a(server, announcement("a"), options);
  const Process b(server, announcement("b"), options);
  const Host host(server);
  ASSERT_TRUE(a.sees({"b"}));
  ASSERT_TRUE(host.is_connected());
  const Announcement dead = announcement("dead");
  Instant said{};
  ASSERT_TRUE(eventually([&] {
    said = system_clock().now();
    return host.say(dead) && a.fit() == Names{"b", "dead"};
  }));
  EXPECT_TRUE(a.sees({"b"}));
  EXPECT_GE(system_clock().now() - said, options.members.silent_after);
}

TEST(Membership, ChangesArriveWithoutAnInterval) {
  const NatsServer server;
  const Process a(server, announcement("a"), only_answers());
  Process b(server, announcement("b"), only_answers());
  ASSERT_TRUE(a.sees({"b"}));
  ASSERT_TRUE(b.sees({"a"}));
  b.membership.update([](Announcement& mine) {
    mine.block_size = 32;
    mine.revision = "9";
  });
  EXPECT_TRUE(eventually([&] {
    const auto members = a.membership.members();
    return members.size() == 1 && members[0].unfit &&
           members[0].unfit->difference == Difference::BlockSize;
  }));
  EXPECT_TRUE(b.fit().empty()) << "compared anew on either side";
  EXPECT_EQ(b.membership.mine().revision, "0") << "stays as it is";
  b.membership.update([](Announcement& mine) { mine.block_size = 16; });
  EXPECT_TRUE(a.sees({"b"}));
}

TEST(Membership, FindsAllMembersAfterAServerRestart) {
  NatsServer server;
  const Process a(server, announcement("a"), quick());
  const Process b(server, announcement("b"), quick());
  const Process c(server, announcement("c"), quick());
  ASSERT_TRUE(a.sees({"b", "c"}));
  ASSERT_TRUE(c.sees({"a", "b"}));
  server.kill();
  EXPECT_TRUE(a.sees({}));
  EXPECT_TRUE(b.sees({}));
  EXPECT_TRUE(c.sees({}));
  server.start();
  EXPECT_TRUE(a.sees({"b", "c"}));
  EXPECT_TRUE(b.sees({"a", "c"}));
  EXPECT_TRUE(c.sees({"a", "b"}));
}

// What a process that may write to the subject can do: a member that fits and does not fit in turn,
// members that do not exist with the largest texts, and messages that are no announcements.
void flood(const Host& host, std::uint64_t round) {
  Announcement fickle = announcement("fickle");
  fickle.instance = 999'999;
  Announcement forged = announcement("forged");
  forged.served_model = std::string(kAnnouncedTextBytesMax, 'x');
  forged.admin_address = std::string(kAnnouncedTextBytesMax, 'x');
  for (std::uint32_t i = 0; i < 300; ++i) {
    fickle.block_size = 16 + i % 2;
    host.forge(fickle);
    forged.instance = 1'000'000 + round * 1000 + i;
    host.forge(forged);
    host.connection->publish(subject_of(forged), std::string(2'000, '{'));
  }
}

TEST(Membership, AFloodOfForgedAnnouncementsStaysWithinLimits) {
  const NatsServer server;
  const MemberExchangeOptions options = quick();
  const Process a(server, announcement("a"), options);
  const Process b(server, announcement("b"), options);
  const Host forger(server);
  ASSERT_TRUE(a.sees({"b"}));
  ASSERT_TRUE(forger.is_connected());
  testing::internal::CaptureStderr();
  const Instant start = system_clock().now();
  std::size_t members_max = 0;
  std::uint64_t round = 0;
  const bool is_refused = eventually([&] {
    flood(forger, ++round);
    members_max = std::max(members_max, a.membership.members().size());
    return a.host.value(R"(replica_members_refused_total{reason="unproven"})") > 1'200;
  });
  const auto looks = (system_clock().now() - start) / milliseconds(50) + 2;
  flush_log();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(is_refused);
  EXPECT_LE(members_max, 1 + options.members.unproven_max);
  EXPECT_TRUE(a.sees({"b"})) << "none of them fits, and b is there";
  // Both processes log at most 32 changes and one further line in each look.
  EXPECT_LE(std::count(said.begin(), said.end(), '\n'), 2 * 33 * looks + 100);

  EXPECT_TRUE(eventually([&] { return a.membership.members().size() == 1; }))
      << "the forged ones fell silent";
  const Process late(server, announcement("late"), quick());
  EXPECT_TRUE(a.sees({"b", "late"}));
  EXPECT_TRUE(late.sees({"a", "b"}));
}

}  // namespace
}  // namespace sightline::membership
