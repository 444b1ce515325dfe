// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/worker_thread.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include <pthread.h>

namespace sightline {
namespace {

constexpr std::size_t kKernelNameBytes = 15;

void run_named(const std::string& name, const std::function<void(std::stop_token)>& body,
               std::stop_token stop) noexcept {
  pthread_setname_np(pthread_self(), name.substr(0, kKernelNameBytes).c_str());
  try {
    body(std::move(stop));
  } catch (const std::exception& escaped) {
    std::fprintf(stderr, "thread %s: exception escaped: %s\n", name.c_str(), escaped.what());
    std::abort();
  } catch (...) {
    std::fprintf(stderr, "thread %s: exception escaped\n", name.c_str());
    std::abort();
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
