// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include <sys/types.h>

namespace sightline::test {

// A nats-server of its own on loopback, on a port that stays its own. Ends with the object.
class NatsServer {
 public:
  // config: further lines of its configuration file.
  explicit NatsServer(std::string config = {});
  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  void start();   // again on the same port; returns when it takes connections
  void kill();    // at once, as by a crash
  void freeze();  // from its return on it neither reads nor answers until thaw()
  void thaw();
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  // Of files that the object deletes in the end.
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  std::string config_;
  std::string directory_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace sightline::test
