// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/worker_thread.h"

#include <exception>
#include <utility>

#include <pthread.h>

#include "common/base/check.h"

namespace sightline {
namespace {

constexpr std::size_t kKernelNameBytes = 15;

void run_named(const std::string& name, const std::function<void(std::stop_token)>& body,
               std::stop_token stop) noexcept {
  pthread_setname_np(pthread_self(), name.substr(0, kKernelNameBytes).c_str());
  try {
    body(std::move(stop));
  } catch (const std::exception& escaped) {
    die("thread " + name + ": exception escaped: " + escaped.what());
  } catch (...) {
    die("thread " + name + ": exception escaped");
  }
}

}  // namespace

WorkerThread::WorkerThread(std::string name, std::function<void(std::stop_token)> body)
    : thread_([name = std::move(name), body = std::move(body)](std::stop_token stop) noexcept {
        run_named(name, body, std::move(stop));
      }) {}

void WorkerThread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace sightline
