// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/client.h"
#include "common/runtime/io_pool.h"

#include "router/top/facts.h"

namespace sightline::cli {

inline constexpr std::size_t kAdminPortsMax = 32;
// Of one answer: /metrics of a router with 10,000 workers has 20 MB.
inline constexpr std::size_t kAdminAnswerBytesMax = 64 << 20;

// An admin port as it was named.
struct AdminPort {
  std::string name;  // "HOST:PORT", for people
  http::ServerAddress address;
};

// What came of one request.
struct AdminAnswer {
  int status = 0;  // 0: no answer
  std::string body;
  std::string trouble;  // why there is none
};

// "http://HOST[:PORT]", several with commas between; without a port 9090. Errors: InvalidArgument.
Result<std::vector<AdminPort>> parse_admin_ports(std::string_view urls);

// Sends requests to admin ports.
// Thread safety: from one thread.
class AdminPorts {
 public:
  AdminPorts();
  ~AdminPorts();
  AdminPorts(const AdminPorts&) = delete;
  AdminPorts& operator=(const AdminPorts&) = delete;

  // What all of them say, in their order. Waits for `patience` at most; whoever has not answered by
  // then is in trouble.
  std::vector<top::RouterFacts> ask(const std::vector<AdminPort>& ports, Duration patience);

  // Sends a POST without a body and waits for the answer: `patience` for its header at most.
  // An empty token is not sent.
  AdminAnswer post(const AdminPort& port, std::string path, const std::string& token,
                   Duration patience);

 private:
  struct Round;
  struct Posted;
  Task<void> ask_one(std::shared_ptr<Round> round, std::size_t port, std::string_view path);
  Task<void> post_one(std::shared_ptr<Posted> posted);

  IoPool pool_;
  http::Client client_;
};

}  // namespace sightline::cli
