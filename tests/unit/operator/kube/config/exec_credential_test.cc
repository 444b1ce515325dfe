// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/exec_credential.h"

#include <gtest/gtest.h>

namespace sightline::config {
namespace {

ExecPlugin shell(const std::string& script) {
  ExecPlugin plugin;
  plugin.api_version = "client.authentication.k8s.io/v1";
  plugin.command = "sh";
  plugin.arguments = {"-c", script};
  plugin.install_hint = "install it";
  plugin.environment = {{"MINE", "yes"}};
  return plugin;
}

std::string problem(const std::string& text) {
  const auto parsed = parse_exec_credential(text, shell(""));
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(ExecPlugin, GetsItsEnvironmentAndExecInfo) {
  const auto text = run_plugin(shell("echo $MINE $KUBERNETES_EXEC_INFO; cat"), "told");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, "yes told\n");
}

TEST(ExecPlugin, FailuresAreErrorsWithItsHint) {
  for (const std::string script : {"echo '{}'; exit 3", "kill -9 $$"}) {
    const auto text = run_plugin(shell(script), "");
    ASSERT_FALSE(text.ok());
    EXPECT_NE(text.error().message.find("install it"), std::string::npos);
  }
  ExecPlugin absent = shell("");
  absent.command = "no-such-program-anywhere";
  EXPECT_FALSE(run_plugin(absent, "").ok());
  ExecPlugin terminal = shell("echo x");
  terminal.needs_terminal = true;
  EXPECT_FALSE(run_plugin(terminal, "").ok());
  ExecPlugin old = shell("echo x");
  old.api_version = "client.authentication.k8s.io/v1alpha1";
  EXPECT_FALSE(run_plugin(old, "").ok());
}

TEST(ExecPlugin, ThatPrintsForEverIsStopped) {
  const auto text = run_plugin(shell("yes"), "");
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.error().message.find("too much"), std::string::npos);
}

TEST(ExecCredential, RefusesAnIncompleteOrOtherVersion) {
  constexpr const char* kHead =
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential")";
  EXPECT_EQ(problem(std::string(kHead) + R"(,"status":{"token":"t"}})"), "");
  EXPECT_NE(problem("x").find("no JSON"), std::string::npos);
  EXPECT_NE(problem(std::string(kHead) + "}").find("status"), std::string::npos);
  EXPECT_NE(problem(std::string(kHead) + R"(,"status":{}})").find("neither"), std::string::npos);
  EXPECT_NE(problem(std::string(kHead) + R"(,"status":{"clientKeyData":"k"}})").find("other"),
            std::string::npos);
  EXPECT_NE(problem(std::string(kHead) + R"(,"status":{"token":"t","expirationTimestamp":"soon"}})")
                .find("expirationTimestamp"),
            std::string::npos);
  EXPECT_NE(problem(R"({"apiVersion":"v0","kind":"ExecCredential","status":{"token":"t"}})")
                .find("apiVersion"),
            std::string::npos);
}

}  // namespace
}  // namespace sightline::config
