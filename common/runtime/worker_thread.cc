// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/worker_thread.h"

#include <exception>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/line_writer.h"
#include "common/base/log.h"

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

std::jthread started(const std::string& name, std::function<void(std::stop_token)> body) {
  try {
    return std::jthread([name, body = std::move(body)](std::stop_token stop) noexcept {
      run_named(name, body, std::move(stop));
    });
  } catch (const std::system_error& error) {
    flush_log();
    end_without_thread(STDERR_FILENO, name, error.what());
  }
}

}  // namespace

WorkerThread::WorkerThread(const std::string& name, std::function<void(std::stop_token)> body)
    : thread_(started(name, std::move(body))) {}

void WorkerThread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace sightline
