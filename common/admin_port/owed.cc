// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/admin_port/owed.h"

#include <utility>

#include <asio/post.hpp>

namespace sightline::admin_port {

AdminServer::Respond Owed::respond() {
  // Its destructor runs with that of the last copy.
  struct Promise {
    explicit Promise(std::shared_ptr<Owed> answer) : owed(std::move(answer)) {}
    ~Promise() { owed->give(admin_error(503, "the process is stopping and will not answer")); }
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    std::shared_ptr<Owed> owed;
  };
  auto promise = std::make_shared<Promise>(shared_from_this());
  return [promise = std::move(promise)](const AdminResponse& response) {
    promise->owed->give(response);
  };
}

void Owed::give(const AdminResponse& response) {
  const MutexLock lock(mutex_);
  // Only the first answer counts.
  if (!is_awaited_ || response_) return;
  response_ = response;
  // Under the lock: home's context exists while the answer is awaited.
  asio::post(home_, [self = shared_from_this()] {
    if (self->come_ != nullptr) self->come_->open();
  });
}

bool Owed::is_awaited() const {
  const MutexLock lock(mutex_);
  return is_awaited_;
}

void Owed::abandon() {
  come_ = nullptr;
  const MutexLock lock(mutex_);
  is_awaited_ = false;
}

std::optional<AdminResponse> Owed::take() {
  const MutexLock lock(mutex_);
  return std::exchange(response_, std::nullopt);
}

}  // namespace sightline::admin_port
