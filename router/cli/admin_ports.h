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

#include "router/top/top_facts.h"

namespace sightline::cli {

// How many admin ports `sightline top` watches.
inline constexpr std::size_t kAdminPortsMax = 32;
// The limit of one answer. /metrics of a router with 10,000 workers has 20 MB.
inline constexpr std::size_t kAdminAnswerBytesMax = 64 << 20;

// An admin port as the user named it.
struct AdminPort {
  // "HOST:PORT", for messages.
  std::string name;
  http::ServerAddress address;
};

// The result of one request.
struct AdminAnswer {
  // The HTTP status. 0: no answer.
  int status = 0;
  std::string body;
  // Why there is no answer. Empty if there is one.
  std::string trouble;
};

// Parses "http://HOST[:PORT]", or several with commas between. The default port is 9090. Error:
// InvalidArgument.
Result<std::vector<AdminPort>> parse_admin_ports(std::string_view urls);

// Sends requests to admin ports, on an I/O thread of its own.
// Thread safety: one thread at a time.
class AdminPorts {
 public:
  AdminPorts();
  ~AdminPorts();
  AdminPorts(const AdminPorts&) = delete;
  AdminPorts& operator=(const AdminPorts&) = delete;

  // Returns the facts of all ports, in their order. Waits for at most `patience`. A port that has
  // not answered by then has a `trouble`.
  std::vector<top::RouterFacts> ask(const std::vector<AdminPort>& ports, Duration patience);

  // Sends a POST without a body and waits for the answer. `patience` limits the wait for its
  // header. An empty token is not sent.
  AdminAnswer post(const AdminPort& port, std::string path, const std::string& token,
                   Duration patience);

 private:
  // The state that requests share with a caller that may stop waiting.
  struct Round;
  struct Posted;
  Task<void> ask_one(std::shared_ptr<Round> round, std::size_t port, std::string_view path);
  Task<void> post_one(std::shared_ptr<Posted> posted);

  IoPool pool_;
  http::Client client_;
};

}  // namespace sightline::cli
