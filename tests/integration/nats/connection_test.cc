// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/connection.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/integration/nats/peer.h"

namespace sightline::nats {
namespace {

using test::eventually;
using test::NatsServer;

TEST(Connection, MessagesAfterConnectedReachTheOther) {
  const NatsServer server;
  Peer reader(server.url());
  Peer writer(server.url());
  reader.connection->subscribe("a.*", reader.inbox);
  EXPECT_EQ(reader.next(), "+");
  ASSERT_TRUE(eventually([&] { return writer.connection->connected(); }));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(writer.connection->publish("a.b", std::to_string(i)));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(reader.next(), std::to_string(i));
  EXPECT_FALSE(writer.connection->away_since());
  EXPECT_EQ(writer.connection->trouble(), "");
}

TEST(Connection, ReportsAKilledServerAndResubscribesAfterItsReturn) {
  NatsServer server;
  Peer peer(server.url());
  peer.connection->subscribe("a", peer.inbox);
  EXPECT_EQ(peer.next(), "+");
  server.kill();
  EXPECT_EQ(peer.next(), "-");
  EXPECT_TRUE(peer.connection->away_since());
  EXPECT_NE(peer.connection->trouble(), "");
  EXPECT_FALSE(peer.connection->publish("a", "stale"));
  EXPECT_TRUE(peer.has("reason=\"not-connected\"} 1"));
  server.start();
  EXPECT_EQ(peer.next(), "+");
  EXPECT_TRUE(peer.connection->publish("a", "fresh"));
  EXPECT_EQ(peer.next(), "fresh");
}

TEST(Connection, ConfirmsASubjectAddedWhileConnected) {
  const NatsServer server;
  Peer peer(server.url());
  peer.connection->subscribe("a", peer.inbox);
  EXPECT_EQ(peer.next(), "+");
  peer.connection->subscribe("b", peer.inbox);
  EXPECT_EQ(peer.next(), "+b");
  EXPECT_TRUE(peer.connection->publish("b", "x"));
  EXPECT_EQ(peer.next(), "x");
}

TEST(Connection, AnotherPasswordInTheFileIsTriedWithoutARestart) {
  const NatsServer server("authorization { user: me, password: right }");
  contract::NatsSettings settings;
  settings.credentials_file = server.directory() + "/credentials";
  std::ofstream(settings.credentials_file) << "me:wrong\n";
  Peer peer(server.url(), settings);
  peer.connection->subscribe("a", peer.inbox);
  ASSERT_TRUE(eventually([&] { return peer.connection->trouble() != "not yet connected"; }));
  EXPECT_FALSE(peer.connection->connected());
  EXPECT_EQ(peer.connection->trouble().find("wrong"), std::string::npos);
  std::ofstream(settings.credentials_file) << "me:right\n";
  EXPECT_EQ(peer.next(), "+");
}

TEST(Connection, ARefusedSubjectIsALossOfItsInbox) {
  const NatsServer server(
      "authorization { users: [ { user: me, password: x, permissions: { publish: \"sl.a.b.>\", "
      "subscribe: \"sl.a.b.>\" } } ] }");
  contract::NatsSettings settings;
  settings.credentials_file = server.directory() + "/credentials";
  std::ofstream(settings.credentials_file) << "me:x";
  Peer peer(server.url(), settings);
  peer.connection->subscribe("sl.other.b.0.load", peer.inbox);
  std::vector<std::string> events = {peer.next(), peer.next()};
  std::sort(events.begin(), events.end());
  EXPECT_EQ(events, (std::vector<std::string>{"+", "lost 0"}));
  EXPECT_TRUE(peer.connection->publish("sl.other.b.0.load", "x"));
  EXPECT_TRUE(eventually([&] { return peer.has("reason=\"not-permitted\"} 2"); }));
}

TEST(Connection, AMessageLargerThanTheServerTakesIsRefused) {
  const NatsServer server("max_payload: 1000");
  Peer peer(server.url());
  ASSERT_TRUE(eventually([&] { return peer.connection->connected(); }));
  EXPECT_EQ(peer.connection->payload_max(), 1000u);
  EXPECT_TRUE(peer.connection->publish("a", std::string(1000, 'x')));
  EXPECT_FALSE(peer.connection->publish("a", std::string(1001, 'x')));
  EXPECT_FALSE(peer.connection->publish("a b", "x"));
  EXPECT_TRUE(peer.has("reason=\"too-large\"} 1"));
  EXPECT_TRUE(peer.has("reason=\"subject\"} 1"));
  EXPECT_TRUE(peer.connection->connected());
}

TEST(Connection, MissedMessagesAreALossInOrder) {
  const NatsServer server;
  Inbox::Limits limits;
  limits.messages_max = 2;
  Peer reader(server.url(), {}, limits);
  Peer witness(server.url());
  reader.connection->subscribe("a", reader.inbox);
  EXPECT_EQ(reader.next(), "+");
  ASSERT_TRUE(eventually([&] { return witness.connection->connected(); }));
  for (const char* text : {"1", "2", "3", "4"}) witness.connection->publish("a", text);
  ASSERT_TRUE(eventually([&] { return reader.has("reason=\"inbox-full\"} 2"); }));
  EXPECT_EQ(reader.next(), "1");
  witness.connection->publish("a", "5");
  EXPECT_EQ(reader.next(), "2");
  EXPECT_EQ(reader.next(), "lost 2");
  EXPECT_EQ(reader.next(), "5");
}

TEST(Connection, SettingsThatCanNeverWorkAreRefused) {
  runtime::Metrics metrics;
  contract::NatsSettings settings;
  settings.urls = "nats://";
  EXPECT_FALSE(Connection::create({settings, "x", Sending::AtOnce}, metrics, system_clock()).ok());
}

}  // namespace
}  // namespace sightline::nats
