// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/connect.h"

#include <set>

#include <gtest/gtest.h>

#include "operator/manager/settings.h"

namespace sightline::manager {
namespace {

TEST(Connection, IsNotKnownWithoutAPodOrAFileAndTheErrorNamesTheFix) {
  const auto connection = connection_for({}, {{"HOME", "/nowhere"}});
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find("give --kubeconfig or KUBECONFIG"), std::string::npos)
      << connection.error().message;
}

TEST(Connection, OfAFileThatIsNotThereNamesIt) {
  KubeSettings settings;
  settings.kubeconfig = "/nowhere/config";
  const auto connection = connection_for(settings, {});
  ASSERT_FALSE(connection.ok());
  EXPECT_NE(connection.error().message.find("/nowhere/config"), std::string::npos);
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
