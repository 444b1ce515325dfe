// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/base/result.h"

#include "operator/judge/observe.h"
#include "operator/kube/object/value.h"

namespace sightline::routers {

// The admin port of a router or frontend.
struct Address {
  // An IP address.
  std::string host;
  // The bearer token. Empty: the operator cannot push.
  std::string token;
};

// Reads from and pushes to routers and frontends through their admin ports.
// Thread safety: all methods from any thread. They wait for the answer, each at most kCallMax.
class RouterAdmin {
 public:
  virtual ~RouterAdmin() = default;

  // The router's view of its workers and peers. Errors: Unavailable with the request and the
  // reason.
  virtual Result<judge::RouterAnswers> ask(const Address& router) = 0;
  // The pushed settings of a router or frontend, by name. Errors: see ask().
  virtual Result<std::map<std::string, std::string>> settings(const Address& process) = 0;
  // Sends a JSON object with PUT. Errors: Unavailable, also if this process does not lead: then
  // nothing was sent.
  virtual Result<Done> put(const Address& router, const std::string& path,
                           const object::Value& body) = 0;
};

}  // namespace sightline::routers
