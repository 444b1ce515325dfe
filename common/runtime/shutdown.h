// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace sightline {

// Orderly end of the process. SIGINT or SIGTERM (or request()) starts it; a further signal while
// it runs exits at once with status 128 + signal number, as a shell reports it.
// Create one, first thing in main, before any thread starts: the two signals are blocked in the
// creating thread and in every thread started after it.
// Thread safety: token() and request() from any thread; the others from main.
class Shutdown {
 public:
  Shutdown();
  ~Shutdown();

  // Adds a step of the stop; steps run in reverse order of registration, like destructors.
  void on_stop(std::string name, std::function<void()> step);

  // Stops are requested before the first step runs.
  [[nodiscard]] std::stop_token token() const;

  // Starts the stop from inside the process.
  void request();

  // Waits for a signal or request(), then runs the steps in the calling thread.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline
