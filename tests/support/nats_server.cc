// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/support/nats_server.h"

#include <atomic>
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

// Below the ports that Linux gives to connections and to listeners on port 0 (from 32768 on). So no
// other program gets a port between its choice and its use.
constexpr unsigned kFirstPort = 12000;
constexpr unsigned kPorts = 20000;

// Returns a port on which nothing listens, and which no other call in this process has returned
// lately. Each process begins at another one, because several run tests at the same time.
int free_port() {
  static std::atomic<unsigned> next = static_cast<unsigned>(getpid()) * 997U;
  for (unsigned i = 0; i < kPorts; ++i) {
    const int port = static_cast<int>(kFirstPort + next++ % kPorts);
    const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    const bool is_bound =
        bind(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    close(socket_fd);
    if (is_bound) return port;
  }
  throw std::runtime_error("no port is free");
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
  const std::string log_file = directory_ + "/log";
  pid_ = fork();
  // From here on no memory may be allocated. Another thread may hold the allocator's locks, and in
  // this process they are never released (fork(2), also AddressSanitizer's).
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
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

void NatsServer::freeze() {
  ::kill(pid_, SIGSTOP);
  // kill() returns before the server's threads stop. One on another processor may still answer.
  int status = 0;
  if (waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) {
    throw std::runtime_error("nats-server has ended and cannot be frozen");
  }
}

void NatsServer::thaw() { ::kill(pid_, SIGCONT); }

}  // namespace sightline::test
