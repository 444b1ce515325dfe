// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/shutdown.h"

#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/runtime/worker_thread.h"

namespace sightline {
namespace {

constexpr int kSignalExitBase = 128;

struct Step {
  std::string name;
  std::function<void()> run;
};

}  // namespace

struct Shutdown::State {
  std::stop_source stopping;
  std::vector<Step> steps;
  int signals = -1;
  int quit = -1;
  std::mutex mutex;  // guards stop_asked
  std::condition_variable asked;
  bool stop_asked = false;
  std::optional<WorkerThread> listener;

  void ask() {
    {
      const std::lock_guard lock(mutex);
      stop_asked = true;
    }
    asked.notify_all();
  }

  void listen() {
    bool first = true;
    for (;;) {
      std::array<pollfd, 2> watched{{{signals, POLLIN, 0}, {quit, POLLIN, 0}}};
      if (poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[1].revents != 0) return;
      signalfd_siginfo received{};
      if (read(signals, &received, sizeof received) != sizeof received) continue;
      const int number = static_cast<int>(received.ssi_signo);
      // Steps may hang: whoever signals again wants out now.
      if (!std::exchange(first, false)) _exit(kSignalExitBase + number);
      log(LogLevel::Info, "stopping", {{"signal", number}});
      ask();
    }
  }
};

Shutdown::Shutdown() : state_(std::make_unique<State>()) {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGINT);
  sigaddset(&watched, SIGTERM);
  SL_CHECK(pthread_sigmask(SIG_BLOCK, &watched, nullptr) == 0);
  state_->signals = signalfd(-1, &watched, SFD_CLOEXEC);
  state_->quit = eventfd(0, EFD_CLOEXEC);
  SL_CHECK(state_->signals >= 0 && state_->quit >= 0);
  state_->listener.emplace("sl-signals",
                           [state = state_.get()](std::stop_token) { state->listen(); });
}

Shutdown::~Shutdown() {
  const std::uint64_t one = 1;
  SL_CHECK(write(state_->quit, &one, sizeof one) == sizeof one);
  state_->listener.reset();
  close(state_->signals);
  close(state_->quit);
}

void Shutdown::on_stop(std::string name, std::function<void()> step) {
  state_->steps.push_back({std::move(name), std::move(step)});
}

std::stop_token Shutdown::token() const { return state_->stopping.get_token(); }

void Shutdown::request() { state_->ask(); }

void Shutdown::wait() {
  {
    std::unique_lock lock(state_->mutex);
    state_->asked.wait(lock, [this] { return state_->stop_asked; });
  }
  state_->stopping.request_stop();
  while (!state_->steps.empty()) {
    const Step step = std::move(state_->steps.back());
    state_->steps.pop_back();
    log(LogLevel::Debug, "stop step", {{"step", step.name}});
    step.run();
  }
}

}  // namespace sightline
