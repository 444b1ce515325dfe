// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/api_credentials.h"

#include <map>

#include <gtest/gtest.h>

#include "operator/kube/object/timestamp.h"
#include "tests/fakes/manual_clock.h"

namespace sightline::config {
namespace {

using std::chrono::seconds;

class CredentialsTest : public testing::Test {
 protected:
  Credentials make(Connection connection) {
    return Credentials(
        std::move(connection), clock_,
        {.read = [this](const std::string& path, std::size_t) -> Result<std::string> {
           ++reads_;
           const auto found = files_.find(path);
           if (found == files_.end()) return internal_error("cannot be read");
           return found->second;
         },
         .run = [this](const ExecPlugin&, const std::string& info) -> Result<std::string> {
           ++runs_;
           info_ = info;
           return output_;
         }});
  }
  static std::string bearer(Credentials& credentials) {
    auto presented = credentials.present();
    if (!presented.ok()) return "error: " + presented.error().message;
    return presented->headers.empty() ? "" : presented->headers.front().second;
  }
  static Connection with_token_file() {
    Connection connection;
    connection.user.token_file = "token";
    connection.user.token = "lower";
    return connection;
  }

  test::ManualClock clock_;
  std::map<std::string, std::string> files_;
  std::string output_;
  std::string info_;
  int reads_ = 0;
  int runs_ = 0;
};

TEST_F(CredentialsTest, ReadsATokenAgainAfterFiftySeconds) {
  files_["token"] = "one\n";
  Credentials credentials = make(with_token_file());
  EXPECT_EQ(bearer(credentials), "Bearer one");
  files_["token"] = "two";
  clock_.advance(seconds(49));
  EXPECT_EQ(bearer(credentials), "Bearer one");
  EXPECT_EQ(reads_, 1);
  clock_.advance(seconds(1));
  EXPECT_EQ(bearer(credentials), "Bearer two");
}

TEST_F(CredentialsTest, ATokenThatCannotBeReadAgainStaysInUse) {
  files_["token"] = "one";
  Credentials credentials = make(with_token_file());
  EXPECT_EQ(bearer(credentials), "Bearer one");
  files_.clear();
  clock_.advance(seconds(60));
  EXPECT_EQ(bearer(credentials), "Bearer one");
  files_["token"] = "";
  clock_.advance(seconds(60));
  EXPECT_EQ(bearer(credentials), "Bearer one");
}

TEST_F(CredentialsTest, ATokenThatNeverCouldBeReadIsAnError) {
  Credentials credentials = make(with_token_file());
  EXPECT_EQ(bearer(credentials), "error: token: cannot be read");
  files_["token"] = " \n";
  EXPECT_EQ(bearer(credentials), "error: token: is empty");
  files_["token"] = "a\nb";
  EXPECT_EQ(bearer(credentials), "error: the token is not one line of text");
}

TEST_F(CredentialsTest, ReadsARefusedTokenAgainUnlessNewerThanTheRequest) {
  files_["token"] = "one";
  Credentials credentials = make(with_token_file());
  EXPECT_EQ(bearer(credentials), "Bearer one");
  files_["token"] = "two";
  credentials.on_unauthorized(clock_.now() - seconds(1));
  EXPECT_EQ(bearer(credentials), "Bearer one");
  credentials.on_unauthorized(clock_.now() + seconds(1));
  EXPECT_EQ(bearer(credentials), "Bearer two");
}

TEST_F(CredentialsTest, MaterialIsTheSameObjectUntilAFileChanges) {
  Connection connection;
  connection.cluster.authority.file = "ca";
  files_["ca"] = "A";
  Credentials credentials = make(connection);
  const auto first = credentials.present()->tls;
  EXPECT_EQ(first->authority, "A");
  clock_.advance(seconds(60));
  EXPECT_EQ(credentials.present()->tls, first);
  files_["ca"] = "A and B";
  clock_.advance(seconds(60));
  EXPECT_NE(credentials.present()->tls, first);
}

TEST_F(CredentialsTest, PluginRunsOnceUntilExpiryOrRefusal) {
  Connection connection;
  connection.user.exec.emplace();
  connection.user.exec->api_version = "client.authentication.k8s.io/v1";
  connection.user.exec->wants_cluster = true;
  connection.cluster.server = "https://one";
  output_ = R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
                "status":{"token":"t","expirationTimestamp":")" +
            object::to_timestamp(clock_.wall() + seconds(100)) + "\"}}";
  Credentials credentials = make(connection);
  EXPECT_EQ(bearer(credentials), "Bearer t");
  EXPECT_EQ(bearer(credentials), "Bearer t");
  EXPECT_EQ(runs_, 1);
  EXPECT_NE(info_.find(R"("server":"https://one")"), std::string::npos);
  clock_.advance(seconds(1));
  credentials.on_unauthorized(clock_.now());
  EXPECT_EQ(bearer(credentials), "Bearer t");
  EXPECT_EQ(runs_, 2);
  clock_.advance(seconds(101));
  EXPECT_EQ(bearer(credentials), "Bearer t");
  EXPECT_EQ(runs_, 3);
}

TEST_F(CredentialsTest, ImpersonationIsSaidInHeaders) {
  Connection connection;
  connection.user.token = "t";
  connection.user.as = "other";
  connection.user.as_groups = {"g"};
  Credentials credentials = make(connection);
  const auto presented = credentials.present();
  ASSERT_TRUE(presented.ok());
  EXPECT_EQ(presented->headers.size(), 3U);
  EXPECT_EQ(presented->headers.at(1).first, "Impersonate-User");
}

}  // namespace
}  // namespace sightline::config
