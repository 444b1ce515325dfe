// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/kubeconfig.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace sightline::config {
namespace {

constexpr const char* kText = R"(
apiVersion: v1
kind: Config
current-context: main
clusters:
- name: one
  cluster: {server: "https://one:6443/", certificate-authority: pki/ca.crt, tls-server-name: api}
- name: proxied
  cluster: {server: "https://two", proxy-url: "http://proxy:3128"}
users:
- name: me
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5, tokenFile: token, token: lower}
- name: half
  user: {client-certificate: c.crt}
- name: old
  user: {username: u, password: p}
- name: plugged
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/get-token
      args: [--cluster, one]
      env: [{name: A, value: b}]
      provideClusterInfo: true
      interactiveMode: IfAvailable
contexts:
- name: main
  context: {cluster: one, user: me, namespace: work}
- name: proxied
  context: {cluster: proxied, user: me}
- name: half
  context: {cluster: one, user: half}
- name: old
  context: {cluster: one, user: old}
- name: plugged
  context: {cluster: one, user: plugged}
- name: nobody
  context: {cluster: one, user: nobody}
- name: nowhere
  context: {cluster: nowhere, user: me}
)";

Kubeconfig parsed(const std::string& text) {
  auto kubeconfig = parse_kubeconfig(text, "/etc/kube");
  EXPECT_TRUE(kubeconfig.ok()) << (kubeconfig.ok() ? "" : kubeconfig.error().message);
  return kubeconfig.ok() ? *kubeconfig : Kubeconfig();
}

std::string problem(const std::string& context) {
  const auto connection = connection_of(parsed(kText), context);
  return connection.ok() ? "" : connection.error().message;
}

TEST(Kubeconfig, TheCurrentContextSaysWhereAndWho) {
  const auto connection = connection_of(parsed(kText), "");
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ(connection->cluster.server, "https://one:6443");
  EXPECT_EQ(connection->cluster.authority.file, "/etc/kube/pki/ca.crt");
  EXPECT_EQ(connection->cluster.tls_server_name, "api");
  EXPECT_EQ(connection->user.certificate.text, "cert");
  EXPECT_EQ(connection->user.key.text, "key");
  EXPECT_EQ(connection->user.token_file, "/etc/kube/token");
  EXPECT_EQ(connection->name_space, "work");
}

TEST(Kubeconfig, APluginIsReadWhole) {
  const auto connection = connection_of(parsed(kText), "plugged");
  ASSERT_TRUE(connection.ok());
  const ExecPlugin& plugin = *connection->user.exec;
  EXPECT_EQ(plugin.command, "/etc/kube/bin/get-token");
  EXPECT_EQ(plugin.arguments, (std::vector<std::string>{"--cluster", "one"}));
  EXPECT_EQ(plugin.environment.at(0).second, "b");
  EXPECT_TRUE(plugin.wants_cluster);
  EXPECT_FALSE(plugin.needs_terminal);
  EXPECT_EQ(connection->name_space, "default");
}

TEST(Kubeconfig, WhatCannotBeUsedIsRefusedByName) {
  EXPECT_NE(problem("proxied").find("proxies are not supported"), std::string::npos);
  EXPECT_NE(problem("half").find("without the other"), std::string::npos);
  EXPECT_NE(problem("old").find("password"), std::string::npos);
  EXPECT_NE(problem("nobody").find("no user 'nobody'"), std::string::npos);
  EXPECT_NE(problem("nowhere").find("no cluster 'nowhere'"), std::string::npos);
  EXPECT_NE(problem("absent").find("no context 'absent'"), std::string::npos);
}

TEST(Kubeconfig, OfSeveralFilesTheFirstIsRight) {
  Kubeconfig all = parsed("{current-context: x, clusters: [{name: c, cluster: {server: first}}]}");
  merge(all, parsed("{current-context: y, clusters: [{name: c, cluster: {server: second}},"
                    "{name: d, cluster: {server: third}}]}"));
  EXPECT_EQ(all.current_context, "x");
  EXPECT_EQ(all.clusters.at("c").cluster.server, "first");
  EXPECT_EQ(all.clusters.at("d").cluster.server, "third");
}

TEST(Kubeconfig, TextThatIsNoneIsAnErrorWithItsLine) {
  const auto broken = parse_kubeconfig("a: b\nclusters: [", "/");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().message.find("line"), std::string::npos);
  EXPECT_FALSE(parse_kubeconfig("- a", "/").ok());
  EXPECT_TRUE(parse_kubeconfig("", "/").ok());
  EXPECT_TRUE(parse_kubeconfig("clusters: text\nusers: [a, {name: b}]\ncontexts: {}", "/").ok());
}

TEST(Kubeconfig, IgnoresMissingFilesButNeedsOne) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("kubeconfig_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "one") << "current-context: here";
  const auto found =
      read_kubeconfigs((directory / "none").string() + ":" + (directory / "one").string());
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->current_context, "here");
  EXPECT_FALSE(read_kubeconfigs((directory / "none").string()).ok());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace sightline::config
