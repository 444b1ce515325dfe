// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/connect.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "operator/manager/operator_settings.h"

namespace sightline::manager {
namespace {

TEST(Connection, FailsWithARemedyWithoutAPodOrFile) {
  const auto connection = connection_for({}, {{"HOME", "/nowhere"}});
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find("set --kubeconfig or KUBECONFIG"), std::string::npos)
      << connection.error().message;
}

TEST(Connection, OfAFileThatIsNotThereNamesIt) {
  KubeSettings settings;
  settings.kubeconfig = "/nowhere/config";
  const auto connection = connection_for(settings, {});
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find("/nowhere/config"), std::string::npos);
}

TEST(Connection, DetectsIpv6ByTheServersAddress) {
  config::Connection connection;
  for (const auto& [server, is_six] : {std::pair("https://[fd00::1]:443", true),
                                       {"https://10.0.0.1:443", false},
                                       {"https://kubernetes.example:6443", false}}) {
    connection.cluster.server = server;
    EXPECT_EQ(is_ipv6(connection), is_six) << server;
  }
}

TEST(Namespaces, MustBeValidUniqueAndFew) {
  EXPECT_TRUE(check_namespaces({}).ok());
  EXPECT_TRUE(check_namespaces({"a", "team-b"}).ok());
  for (const std::string wrong : {"", "Team", "-a", "a-", "a.b", "a/b"}) {
    const auto checked = check_namespaces({wrong});
    ASSERT_FALSE(checked.ok()) << wrong;
    EXPECT_NE(checked.error().message.find("--watch-namespace"), std::string::npos);
  }
  EXPECT_FALSE(check_namespaces({"a", "b", "a"}).ok());
  std::vector<std::string> many;
  for (std::size_t i = 0; i <= kNamespacesMax; ++i) many.push_back("n" + std::to_string(i));
  EXPECT_FALSE(check_namespaces(many).ok());
}

TEST(Identity, IsUnlikeThatOfAnyOtherProcess) {
  EXPECT_NE(identity_of_process(), identity_of_process());
}

TEST(Settings, AreDescribedOnceEachWithTheOperatorsOwnDefaults) {
  OperatorSettings settings;
  EXPECT_EQ(settings.admin.port, 8080);
  const contract::SettingTable table = operator_table(settings);
  std::set<std::string> flags;
  for (const contract::Setting& row : table.rows()) {
    EXPECT_TRUE(flags.insert(row.text.flag).second) << row.text.flag;
    EXPECT_FALSE(row.text.help.empty());
  }
}

}  // namespace
}  // namespace sightline::manager
