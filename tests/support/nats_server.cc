// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/support/nats_server.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/eventually.h"

namespace sightline::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int free_port() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  const bool is_bound = bind(socket_fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                        getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(socket_fd);
  return is_bound ? ntohs(address.sin_port) : 0;
}

bool takes_connections(int port) {
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool is_open =
      connect(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(socket_fd);
  return is_open;
}

}  // namespace

NatsServer::NatsServer(std::string config) : config_(std::move(config)), port_(free_port()) {
  std::string name = (std::filesystem::temp_directory_path() / "nats-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = name;
  start();
}

NatsServer::~NatsServer() {
  kill();
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

void NatsServer::start() {
  const std::string file = directory_ + "/nats.conf";
  std::ofstream(file) << "listen: 127.0.0.1:" << port_ << "\n" << config_ << "\n";
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open((directory_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(log, STDERR_FILENO);
    execlp("nats-server", "nats-server", "-c", file.c_str(), nullptr);
    execl("/usr/sbin/nats-server", "nats-server", "-c", file.c_str(), nullptr);
    _exit(127);
  }
  if (!eventually([this] { return takes_connections(port_); })) {
    throw std::runtime_error("nats-server does not start");
  }
}

void NatsServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void NatsServer::freeze() { ::kill(pid_, SIGSTOP); }
void NatsServer::thaw() { ::kill(pid_, SIGCONT); }

}  // namespace sightline::test
