// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"

#include "operator/kube/rest/transport.h"
#include "operator/routers/router_admin.h"

namespace sightline::routers {

// The admin port of routers.
inline constexpr std::uint16_t kAdminPort = 9090;
// The limit for all requests of one call. A router answers from memory, so a longer wait means that
// it is gone.
inline constexpr std::chrono::seconds kCallMax{2};
// The limit of an answer, enough for ten thousand workers. The author of an object decides what its
// routers run. A large answer must not harm the operator, which also manages other authors'
// objects.
inline constexpr std::size_t kAnswerBytesMax = 16 << 20;
inline constexpr std::size_t kAnswerValuesMax = 500'000;

// Calls routers over HTTP. Each call opens a new connection: calls are rare, and pods come and go.
// Thread safety: see RouterAdmin.
class HttpRouterAdmin : public RouterAdmin {
 public:
  struct Options {
    // Makes the transport to a server ("http://10.0.0.7:9090"), which reads at most
    // kAnswerBytesMax.
    std::function<std::unique_ptr<rest::Transport>(const std::string& server)> connect;
    // Asked directly before each PUT. False: this process does not lead.
    std::function<bool()> may_write;
    std::uint16_t port = kAdminPort;
  };
  // The clock must outlive it.
  HttpRouterAdmin(Options options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  Result<judge::RouterAnswers> ask(const Address& router) override;
  Result<std::map<std::string, std::string>> settings(const Address& process) override;
  Result<Done> put(const Address& router, const std::string& path,
                   const object::Value& body) override;

 private:
  [[nodiscard]] std::string server_of(const Address& router) const;

  const Options options_;
  const Clock& clock_;
};

}  // namespace sightline::routers
