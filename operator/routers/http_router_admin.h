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
// Of a call, all its requests together. A router answers from memory; one that is gone is noticed
// by this.
inline constexpr std::chrono::seconds kCallMax{2};
// Of an answer: enough for ten thousand workers. What routers run is in the hands of who wrote the
// object, and this process looks after those of others too.
inline constexpr std::size_t kAnswerBytesMax = 16 << 20;
inline constexpr std::size_t kAnswerValuesMax = 500'000;

// Over HTTP, with a connection made anew for each call: calls are few, and pods come and go.
class HttpRouterAdmin : public RouterAdmin {
 public:
  struct Options {
    // Makes the transport to a server ("http://10.0.0.7:9090"), that reads kAnswerBytesMax at most.
    std::function<std::unique_ptr<rest::Transport>(const std::string& server)> connect;
    // Asked right before each PUT.
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
