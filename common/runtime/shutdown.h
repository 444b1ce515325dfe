// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace sightline {

// The orderly end of the process. SIGINT, SIGTERM or request() starts it. Another of these signals
// during the stop ends the process immediately, with status 128 + signal number, as a shell reports
// it.
//
// SIGHUP runs the action of on_hangup(). Without an action it stops the process like SIGTERM. It
// has no effect if the process started with SIGHUP ignored (nohup), or once the stop has begun. A
// SIGHUP that arrives before on_hangup() or wait() waits for them.
//
// Create one as the first statement of main, before any thread starts. It blocks the signals in the
// creating thread, and threads that start later inherit this.
// Thread safety: token() and request() from any thread, the others from main.
class Shutdown {
 public:
  Shutdown();
  ~Shutdown();

  // Sets the action of SIGHUP until the stop begins. It runs on the thread that receives signals.
  void on_hangup(std::function<void()> action);

  // Adds a step of the stop. Steps run in reverse order of registration, like destructors. `name`
  // is for the log.
  void on_stop(std::string name, std::function<void()> step);

  // The token stops before the first step runs.
  [[nodiscard]] std::stop_token token() const;

  // Starts the stop from inside the process.
  void request();

  // Waits for a signal or request(). Then runs the steps on the calling thread.
  void wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline
