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

inline constexpr std::uint16_t kAdminPort = 9090;
// A router answers from memory. One that is gone is noticed by this.
inline constexpr std::chrono::seconds kCallMax{2};

// Over HTTP, with a connection made anew for each call: calls are few, and pods come and go.
class HttpRouterAdmin : public RouterAdmin {
 public:
  struct Options {
    // Makes the transport to a server ("http://10.0.0.7:9090").
    std::function<std::unique_ptr<rest::Transport>(const std::string& server)> connect;
    // Asked right before each PUT.
    std::function<bool()> may_write;
    std::uint16_t port = kAdminPort;
  };
  explicit HttpRouterAdmin(Options options) : options_(std::move(options)) {}

  Result<judge::RouterAnswers> ask(const Address& router) override;
  Result<std::map<std::string, std::string>> settings(const Address& process) override;
  Result<Done> put(const Address& router, const std::string& path,
                   const object::Value& body) override;

 private:
  [[nodiscard]] std::string server_of(const Address& router) const;

  const Options options_;
};

}  // namespace sightline::routers
