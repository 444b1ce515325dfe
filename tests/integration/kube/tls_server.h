// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sightline::test {

// A certificate and its key, as PEM.
struct Issued {
  std::string certificate;
  std::string key;
};

// A certificate authority with its own key.
class Authority {
 public:
  explicit Authority(const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  [[nodiscard]] std::string certificate() const;
  // For a server on the loopback interface, also under that DNS name, or for a client of that name.
  [[nodiscard]] Issued issue(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A request, and the bytes that are sent as its answer.
struct Conversation {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  // The name in the client's certificate. Empty: it showed no certificate.
  std::string client;
  int connection = 0;  // counted from 1
  // Returns false if the client has left.
  std::function<bool(std::string_view bytes)> send;
  // Waits until the server stops or the client has left.
  std::function<void()> linger;

  void answer(int status, std::string_view body, std::string_view headers = {}) const;
};

// An HTTP/1.1 server over TLS, with a thread for each connection. A connection stays open if its
// handler returned true.
class TlsServer {
 public:
  using Handle = std::function<bool(Conversation&)>;

  // client_authority is the PEM of the authority of client certificates. Empty: clients need no
  // certificate.
  TlsServer(const Issued& own, const std::string& client_authority, Handle handle);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  [[nodiscard]] std::string url(const std::string& host = "127.0.0.1") const;
  [[nodiscard]] int connections() const { return connections_; }
  // New connections get this certificate.
  void use(const Issued& own);

 private:
  void accept();
  void serve(int socket, int number);

  const Handle handle_;
  const std::string client_authority_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> is_stopping_{false};
  std::mutex mutex_;  // for all that follows
  Issued own_;
  std::set<int> sockets_;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace sightline::test
