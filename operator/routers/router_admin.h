// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <string>

#include "common/base/result.h"

#include "operator/judge/observe.h"
#include "operator/kube/object/value.h"

namespace sightline::routers {

// Where the admin port of a router or frontend is and what admits to it.
struct Address {
  std::string host;   // an IP address
  std::string token;  // may be empty: nothing can be pushed then
};

// Asks and tells routers and frontends by their admin ports.
// Thread safety: all methods from any thread; they wait for the answer, kCallMax at most each.
class RouterAdmin {
 public:
  virtual ~RouterAdmin() = default;

  // Errors: Unavailable, with what was asked and why there is no answer.
  virtual Result<judge::RouterAnswers> ask(const Address& router) = 0;
  // The settings that were pushed, by name: of routers and frontends. Errors: as ask().
  virtual Result<std::map<std::string, std::string>> settings(const Address& process) = 0;
  // PUT of a JSON object. Errors: Unavailable; NotLeading is one: nothing was sent then.
  virtual Result<Done> put(const Address& router, const std::string& path,
                           const object::Value& body) = 0;
};

}  // namespace sightline::routers
