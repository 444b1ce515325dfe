// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/process_settings.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "common/contract/serve_settings.h"

namespace sightline::contract {
namespace {

TEST(ProcessSettings, AllProgramsHaveTheSameFlagsAndDefaults) {
  SettingTable shared;
  AdminSettings admin;
  IdentitySettings identity;
  EventSettings events;
  FleetSettings fleet;
  NatsSettings nats;
  ReplicaSettings replica;
  LogSettings log;
  std::vector<WorkerSpec> workers;
  add_admin(shared, admin);
  add_identity(shared, identity);
  add_events(shared, events);
  add_fleet(shared, fleet);
  add_nats(shared, nats);
  add_replica(shared, replica);
  add_log(shared, log);
  add_worker_list(shared, workers);
  ServeSettings settings;
  const SettingTable serve = serve_table(settings);
  std::set<std::string> rows;
  for (const Setting& row : serve.rows()) rows.insert(row.text.flag + " " + row.default_text);
  ASSERT_FALSE(shared.rows().empty());
  for (const Setting& row : shared.rows()) {
    EXPECT_TRUE(rows.contains(row.text.flag + " " + row.default_text)) << row.text.flag;
  }
}

TEST(NatsServers, AreReadFromAListOfUrls) {
  const auto servers = nats_servers("nats://a.b-c_d,tls://10.0.0.1:4223/,nats://[::1]:1");
  ASSERT_TRUE(servers.ok()) << servers.error().message;
  ASSERT_EQ(servers->size(), 3u);
  EXPECT_EQ((*servers)[0].url, "nats://a.b-c_d:4222");
  EXPECT_EQ((*servers)[0].host, "a.b-c_d");
  EXPECT_FALSE((*servers)[0].is_secure);
  EXPECT_EQ((*servers)[1].url, "tls://10.0.0.1:4223");
  EXPECT_TRUE((*servers)[1].is_secure);
  EXPECT_EQ((*servers)[2].url, "nats://[::1]:1");
  EXPECT_EQ((*servers)[2].host, "::1");
}

TEST(NatsServers, TextThatIsNoSuchListIsRefused) {
  for (const char* urls : {"",
                           ",",
                           "nats://a,",
                           "a:4222",
                           "http://a",
                           "nats://",
                           "nats://:1",
                           "nats://a:",
                           "nats://a:0",
                           "nats://a:65536",
                           "nats://a:1x",
                           "nats://a:+1",
                           "nats://a:-1",
                           "nats://a b",
                           "nats://a/b",
                           "nats://a\r\nPUB",
                           "nats://[::1",
                           "nats://[a.b]x",
                           "nats://[]",
                           "nats://[::1]1",
                           "NATS://a",
                           "nats:// a",
                           "nats://a, nats://b"}) {
    const auto servers = nats_servers(urls);
    ASSERT_FALSE(servers.ok()) << urls;
    EXPECT_EQ(servers.error().code, ErrorCode::InvalidArgument);
    EXPECT_TRUE(servers.error().message.starts_with("nats.urls: ")) << servers.error().message;
  }
}

TEST(NatsServers, APasswordInAUrlIsRefusedAndNotRepeated) {
  const auto servers = nats_servers("nats://me:secret@a:1");
  ASSERT_FALSE(servers.ok());
  EXPECT_NE(servers.error().message.find("nats.credentials_file"), std::string::npos);
  EXPECT_EQ(servers.error().message.find("secret"), std::string::npos);
}

TEST(CheckNats, ChecksRelationsOfItsFiles) {
  EXPECT_TRUE(check_nats({}).ok());
  NatsSettings settings;
  settings.cert_file = "c";
  EXPECT_FALSE(check_nats(settings).ok());
  settings.key_file = "k";
  EXPECT_TRUE(check_nats(settings).ok());
  settings.cert_file = "";
  EXPECT_FALSE(check_nats(settings).ok());
  settings = {};
  settings.nkey_file = "n";
  EXPECT_TRUE(check_nats(settings).ok());
  settings.credentials_file = "c";
  EXPECT_FALSE(check_nats(settings).ok());
  settings = {};
  settings.urls = "nats:/a";
  EXPECT_FALSE(check_nats(settings).ok());
}

TEST(CheckReplica, AScopeIsTwoNames) {
  EXPECT_TRUE(check_replica({}).ok());
  for (const std::string& scope : {std::string("a/b"), std::string("a.b/*"), std::string(" / ")}) {
    ReplicaSettings settings;
    settings.scope = scope;
    EXPECT_TRUE(check_replica(settings).ok()) << scope;
  }
  for (const std::string& scope :
       {std::string(), std::string("a"), std::string("/b"), std::string("a/"), std::string("/"),
        std::string("a/b/c"), std::string("a//b"), "a/" + std::string(200, 'b')}) {
    ReplicaSettings settings;
    settings.scope = scope;
    EXPECT_FALSE(check_replica(settings).ok()) << scope;
  }
}

TEST(CheckReplica, NamesAreBoundedAndARevisionIsThere) {
  ReplicaSettings settings;
  settings.name = std::string(kReplicaNameBytesMax, 'n');
  EXPECT_TRUE(check_replica(settings).ok());
  settings.name += 'n';
  EXPECT_FALSE(check_replica(settings).ok());
  settings = {};
  settings.revision = "";
  EXPECT_FALSE(check_replica(settings).ok());
}

// Other processes show these names as JSON, and refuse a process whose names are invalid.
TEST(CheckReplica, NamesAreUtf8) {
  for (auto member : {&ReplicaSettings::name, &ReplicaSettings::revision}) {
    ReplicaSettings settings;
    settings.*member = "caf\xc3\xa9";
    EXPECT_TRUE(check_replica(settings).ok());
    settings.*member = "caf\xe9";
    EXPECT_FALSE(check_replica(settings).ok());
  }
}

TEST(ProcessSettings, AWorkerWithAnAgentNeedsNatsAndIsNamed) {
  WorkerSpec plain;
  plain.name = "w0";
  WorkerSpec with_agent;
  with_agent.name = "w1";
  with_agent.agent = true;
  EXPECT_TRUE(check_agents({}, {}).ok());
  EXPECT_TRUE(check_agents({plain}, {}).ok());
  const auto refused = check_agents({plain, with_agent}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("'w1'"), std::string::npos);
  EXPECT_NE(refused.error().message.find("--nats"), std::string::npos);
  NatsSettings nats;
  nats.urls = "nats://a";
  EXPECT_TRUE(check_agents({plain, with_agent}, nats).ok());
}

}  // namespace
}  // namespace sightline::contract
