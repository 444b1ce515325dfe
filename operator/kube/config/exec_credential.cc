// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/config/exec_credential.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/base64.h"

#include "operator/kube/object/timestamp.h"
#include "operator/kube/object/value.h"

namespace sightline::config {
namespace {

constexpr std::string_view kGroup = "client.authentication.k8s.io/";

Error unusable(const ExecPlugin& plugin, const std::string& what) {
  std::string message = "exec plugin " + plugin.command + ": " + what;
  if (!plugin.install_hint.empty()) message += ". " + plugin.install_hint;
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

bool is_known_version(const std::string& version) {
  return version == std::string(kGroup) + "v1" || version == std::string(kGroup) + "v1beta1";
}

// Names and values in the form that the kernel needs: pointers into strings that must outlive them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A child process whose output is read. The destructor kills it and waits for it.
struct Child {
  pid_t pid = -1;
  int output = -1;

  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (output >= 0) ::close(output);
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    wait();
  }
  int wait() {
    int status = -1;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    return status;
  }
};

std::vector<std::string> environment_of(const ExecPlugin& plugin, const std::string& info) {
  std::vector<std::string> all;
  for (const auto& [name, value] : plugin.environment) {
    std::string entry = name;
    entry += '=';
    entry += value;
    all.push_back(std::move(entry));
  }
  all.push_back("KUBERNETES_EXEC_INFO=" + info);
  // A variable of the kubeconfig replaces the one of this process.
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool is_given = false;
    for (const std::string& other : all) is_given = is_given || other.starts_with(name);
    if (!is_given) all.emplace_back(text);
  }
  return all;
}

bool start(const ExecPlugin& plugin, const std::string& info, Child& child) {
  std::array<int, 2> pipe{};
  // Without O_CLOEXEC another child process could keep the pipe open, so its end would not come.
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return false;
  child.output = pipe[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // A plugin that reads input finds its end and does not wait.
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  std::vector<std::string> words = {plugin.command};
  words.insert(words.end(), plugin.arguments.begin(), plugin.arguments.end());
  std::vector<std::string> environment = environment_of(plugin, info);
  const int failure = ::posix_spawnp(&child.pid, plugin.command.c_str(), &actions, nullptr,
                                     pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  // Only the child still has the writing end, so its exit ends the output.
  ::close(pipe[1]);
  // posix_spawnp() returns its error. The caller reads errno.
  errno = failure;
  if (failure != 0) child.pid = -1;
  return failure == 0;
}

// Reads all output up to its end, within the limits of time and size.
Result<std::string> output_of(const ExecPlugin& plugin, const Child& child) {
  std::string text;
  std::array<char, 4096> piece{};
  const Instant end = system_clock().now() + kExecTimeMax;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - system_clock().now()).count();
    pollfd readable{child.output, POLLIN, 0};
    if (left <= 0) return unusable(plugin, "did not end in time");
    if (::poll(&readable, 1, static_cast<int>(left)) < 0 && errno != EINTR) {
      return unusable(plugin, "its output cannot be read");
    }
    if (readable.revents == 0) continue;
    const ssize_t got = ::read(child.output, piece.data(), piece.size());
    if (got < 0) return unusable(plugin, "its output cannot be read");
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kExecOutputBytesMax) return unusable(plugin, "printed too much output");
  }
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, const Cluster& cluster,
                      const std::string& authority_pem) {
  auto info = object::Value::object({{"apiVersion", plugin.api_version},
                                     {"kind", "ExecCredential"},
                                     {"spec", object::Value::object({{"interactive", false}})}});
  if (plugin.wants_cluster) {
    auto told = object::Value::object({{"server", cluster.server}});
    if (!cluster.tls_server_name.empty()) told.set({"tls-server-name"}, cluster.tls_server_name);
    if (cluster.is_insecure) told.set({"insecure-skip-tls-verify"}, true);
    if (!authority_pem.empty()) {
      told.set({"certificate-authority-data"}, to_base64(bytes_of(authority_pem)));
    }
    info.set({"spec", "cluster"}, std::move(told));
  }
  return info.to_text();
}

Result<ExecCredential> parse_exec_credential(const std::string& text, const ExecPlugin& plugin) {
  const auto parsed = object::Value::parse(text);
  if (!parsed.ok()) return unusable(plugin, "printed no JSON");
  const object::Value& status = (*parsed)["status"];
  if ((*parsed)["kind"].text() != "ExecCredential" || !status.is_object()) {
    return unusable(plugin, "printed no ExecCredential with a status");
  }
  if ((*parsed)["apiVersion"].text() != plugin.api_version) {
    return unusable(plugin, "printed another apiVersion than " + plugin.api_version);
  }
  ExecCredential credential;
  credential.token = status["token"].text();
  credential.certificate = status["clientCertificateData"].text();
  credential.key = status["clientKeyData"].text();
  if (credential.certificate.empty() != credential.key.empty()) {
    return unusable(plugin, "gave a certificate or a key without the other");
  }
  if (credential.token.empty() && credential.certificate.empty()) {
    return unusable(plugin, "gave neither a token nor a certificate");
  }
  if (const std::string_view expires = status["expirationTimestamp"].text(); !expires.empty()) {
    credential.expires = object::parse_timestamp(expires);
    if (!credential.expires)
      return unusable(plugin, "gave an expirationTimestamp that is not a time");
  }
  return credential;
}

Result<std::string> run_plugin(const ExecPlugin& plugin, const std::string& info) {
  if (!is_known_version(plugin.api_version)) {
    return unusable(plugin, "its apiVersion must be " + std::string(kGroup) + "v1 or v1beta1");
  }
  if (plugin.needs_terminal) return unusable(plugin, "needs a terminal (interactiveMode Always)");
  Child child;
  if (!start(plugin, info, child)) {
    return unusable(plugin, std::string("cannot be run: ") + std::strerror(errno));
  }
  auto text = output_of(plugin, child);
  // ~Child() kills the plugin.
  if (!text.ok()) return text;
  const int status = child.wait();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return unusable(plugin, "failed");
  return text;
}

}  // namespace sightline::config
