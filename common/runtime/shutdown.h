// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace sightline {

// Orderly end of the process. SIGINT or SIGTERM (or request()) starts it; a further one while it
// runs exits at once with status 128 + signal number, as a shell reports it. SIGHUP does what
// on_hangup() says, else it stops like SIGTERM; where the process was started with SIGHUP ignored
// (nohup), and once it stops, it does nothing.
// Create one, first thing in main, before any thread starts: the signals are blocked in the
// creating thread and in every thread started after it. SIGHUP waits until on_hangup() or wait().
// Thread safety: token() and request() from any thread; the others from main.
class Shutdown {
 public:
  Shutdown();
  ~Shutdown();

  // What SIGHUP does from here on until the stop begins; runs on the thread that receives signals.
  void on_hangup(std::function<void()> action);

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
