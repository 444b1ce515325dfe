// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/hosts/lookup.h"

namespace sightline::hosts {

// Asks for host names as /etc/resolv.conf says, search domains included; names of /etc/hosts come
// first. Changes of both files count from the next name on. No name holds a thread, so any number
// may be without an answer; other sources of /etc/nsswitch.conf are not asked.
// Thread safety: all methods from any thread.
class Servers {
 public:
  Servers();
  ~Servers();  // as stop()
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // When it returns nobody is being called back, nor will be. Idempotent.
  void stop();

  // Calls back once, on a thread of its own, which starts with the first name. Several seconds
  // pass before silence is taken for an answer.
  void ask(const std::string& name, Lookup::Done done);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::hosts
