// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include <sys/types.h>

namespace sightline::test {

// A nats-server on loopback with a port that it keeps. It ends with the object.
class NatsServer {
 public:
  // config: more lines of its configuration file.
  explicit NatsServer(std::string config = {});
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  void start();   // again on the same port, returns when it accepts connections
  void kill();    // immediately, like a crash
  void freeze();  // from then on it neither reads nor answers, until thaw()
  void thaw();
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  // For files that the destructor deletes.
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  std::string config_;
  std::string directory_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace sightline::test
