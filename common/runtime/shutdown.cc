// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/shutdown.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/runtime/worker_thread.h"

namespace sightline {
namespace {

// The exit status of a process that a signal ended, as shells report it: 128 + signal number.
constexpr int kSignalExitBase = 128;

sigset_t set_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

struct Step {
  std::string name;
  std::function<void()> run;
};

}  // namespace

struct Shutdown::State {
  std::stop_source stopping;
  std::vector<Step> steps;
  int signals = -1;
  int hangups = -1;
  int wake = -1;  // makes the listener read the next two
  std::atomic<bool> hears_hangups = false;
  std::atomic<bool> is_ending = false;
  Mutex mutex;
  CondVar asked;
  bool stop_asked SL_GUARDED_BY(mutex) = false;
  // Called with the mutex held, so it never runs after the stop began.
  std::function<void()> hangup SL_GUARDED_BY(mutex);
  std::optional<WorkerThread> listener;

  // Reads SIGHUP from here on, including signals that arrived before.
  void receive_hangups() {
    struct sigaction at_start {};
    SL_CHECK(sigaction(SIGHUP, nullptr, &at_start) == 0);
    // signalfd reports a blocked signal even if the process ignores it, so the listener must not
    // read hangups then.
    if (at_start.sa_handler == SIG_IGN) return;
    hears_hangups = true;
    SL_CHECK(eventfd_write(wake, 1) == 0);
  }

  // Returns false if the signal requests the stop.
  bool take_hangup() {
    const MutexLock lock(mutex);
    if (stop_asked) return true;
    if (!hangup) return false;
    hangup();
    return true;
  }

  void ask() {
    {
      const MutexLock lock(mutex);
      stop_asked = true;
    }
    asked.notify_all();
  }

  void listen() {
    bool first = true;
    for (;;) {
      const int hangups_here = hears_hangups ? hangups : -1;  // poll() ignores -1
      std::array<pollfd, 3> watched{
          {{wake, POLLIN, 0}, {signals, POLLIN, 0}, {hangups_here, POLLIN, 0}}};
      if (poll(watched.data(), watched.size(), -1) < 0) continue;
      if (is_ending) return;
      if (watched[0].revents != 0) {
        eventfd_t cleared = 0;
        SL_CHECK(eventfd_read(wake, &cleared) == 0);
        continue;
      }
      const int source = watched[1].revents != 0 ? signals : hangups;
      signalfd_siginfo received{};
      if (read(source, &received, sizeof received) != sizeof received) continue;
      const int number = static_cast<int>(received.ssi_signo);
      if (number == SIGHUP && take_hangup()) continue;
      // The steps may hang. A second signal means: end now.
      if (!std::exchange(first, false)) _exit(kSignalExitBase + number);
      log(LogLevel::Info, "stopping", {{"signal", number}});
      ask();
    }
  }
};

Shutdown::Shutdown() : state_(std::make_unique<State>()) {
  const sigset_t blocked = set_of({SIGINT, SIGTERM, SIGHUP});
  const sigset_t watched = set_of({SIGINT, SIGTERM});
  // Blocked, because only a blocked signal reaches signalfd.
  SL_CHECK(pthread_sigmask(SIG_BLOCK, &blocked, nullptr) == 0);
  state_->signals = signalfd(-1, &watched, SFD_CLOEXEC);
  const sigset_t hangup = set_of({SIGHUP});
  state_->hangups = signalfd(-1, &hangup, SFD_CLOEXEC);
  state_->wake = eventfd(0, EFD_CLOEXEC);
  SL_CHECK(state_->signals >= 0 && state_->hangups >= 0 && state_->wake >= 0);
  state_->listener.emplace("sl-signals",
                           [state = state_.get()](std::stop_token) { state->listen(); });
}

Shutdown::~Shutdown() {
  state_->is_ending = true;
  // poll() has no other reason to return.
  SL_CHECK(eventfd_write(state_->wake, 1) == 0);
  state_->listener.reset();
  close(state_->signals);
  close(state_->hangups);
  close(state_->wake);
}

void Shutdown::on_hangup(std::function<void()> action) {
  {
    const MutexLock lock(state_->mutex);
    state_->hangup = std::move(action);
  }
  state_->receive_hangups();
}

void Shutdown::on_stop(std::string name, std::function<void()> step) {
  state_->steps.push_back({std::move(name), std::move(step)});
}

std::stop_token Shutdown::token() const { return state_->stopping.get_token(); }

void Shutdown::request() { state_->ask(); }

void Shutdown::wait() {
  state_->receive_hangups();
  {
    const MutexLock lock(state_->mutex);
    state_->asked.wait(state_->mutex,
                       [this]() SL_REQUIRES(state_->mutex) { return state_->stop_asked; });
  }
  state_->stopping.request_stop();
  // Removed before it runs, so nothing keeps the objects of a completed step alive.
  while (!state_->steps.empty()) {
    const Step step = std::move(state_->steps.back());
    state_->steps.pop_back();
    log(LogLevel::Debug, "stop step", {{"step", step.name}});
    step.run();
  }
}

}  // namespace sightline
