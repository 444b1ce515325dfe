// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/hosts/lookup.h"

namespace sightline::subscriber {

// An endpoint to connect to, as a rank or the operator wrote it. libzmq would look up its host name
// on the one thread that serves all ranks. So libzmq receives numeric addresses only.
class ZmqEndpoint {
 public:
  ZmqEndpoint() = default;
  // Parses an endpoint. `which` names the endpoint in errors. Endpoints other than TCP are left to
  // libzmq. Error: InvalidArgument if its host is neither an address nor a name, or if the port is
  // missing.
  static Result<ZmqEndpoint> parse(std::string_view which, std::string text);

  // An endpoint of this machine to bind. libzmq looks up only interfaces in it.
  static ZmqEndpoint to_bind(std::string text);

  // Returns the host name to look up. Empty if the endpoint has no name.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns the endpoint as it was written.
  [[nodiscard]] const std::string& text() const { return text_; }
  // Returns the endpoint with this address in place of the name.
  [[nodiscard]] std::string at(const asio::ip::address& address) const;

 private:
  // The endpoint as written, and its parts around the name. The parts are empty without a name.
  std::string text_;
  std::string before_;
  std::string name_;
  std::string after_;
};

// The error says which endpoint cannot be used, why, and how to write one.
Error endpoint_refused(std::string_view which, std::string_view reason);

}  // namespace sightline::subscriber
