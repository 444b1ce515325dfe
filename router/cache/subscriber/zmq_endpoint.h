// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/hosts/lookup.h"

namespace sightline::subscriber {

// An endpoint as a rank or the operator wrote it, to connect to. libzmq would look its host's
// name up on the one thread that serves all ranks, so it is given numeric addresses only.
class ZmqEndpoint {
 public:
  ZmqEndpoint() = default;
  // `which` says for errors what it is. Errors: InvalidArgument, when its host is neither an
  // address nor a name, or a name comes without a port. What has no host is left to libzmq.
  static Result<ZmqEndpoint> parse(std::string_view which, std::string text);

  // One of this machine to bind, in which libzmq looks up interfaces only.
  static ZmqEndpoint to_bind(std::string text);

  // The name to be looked up; empty: there is none.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  // With this address in place of the name.
  [[nodiscard]] std::string at(const asio::ip::address& address) const;

 private:
  std::string text_;
  std::string before_;
  std::string name_;
  std::string after_;
};

// Says which endpoint cannot be used, why, and how one is written.
Error endpoint_refused(std::string_view which, std::string_view reason);

}  // namespace sightline::subscriber
