// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/hosts/lookup.h"

namespace sightline::hosts {

// Asks name servers as /etc/resolv.conf says, with its search domains. Names in /etc/hosts come
// first. Changes of both files apply from the next name on. Other sources of /etc/nsswitch.conf are
// not used. A name does not occupy a thread, so any number of names may be without an answer.
// Thread safety: all methods from any thread.
class Servers {
 public:
  Servers();
  // Calls stop().
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // When it returns, no callback runs or will run. Further calls have no effect.
  void stop();

  // Calls back once, on a thread of its own, which starts with the first name. If no server
  // answers, it calls back after several seconds.
  void ask(const std::string& name, Lookup::Done done);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::hosts
