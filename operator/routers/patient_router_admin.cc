// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/routers/patient_router_admin.h"

#include <algorithm>
#include <utility>

namespace sightline::routers {

PatientRouterAdmin::Entry PatientRouterAdmin::enter(const std::string& host) {
  const MutexLock lock(mutex_);
  const auto silent = silent_.find(host);
  if (silent == silent_.end()) return {};
  const bool is_left_alone =
      clock_.now() < silent->second.until || waiting_ >= options_.waiting_max;
  if (is_left_alone) return {.problem = silent->second.problem, .is_suspect = true};
  ++waiting_;
  return {.problem = {}, .is_suspect = true};
}

void PatientRouterAdmin::leave(const std::string& host, bool is_suspect, const std::string& problem,
                               Duration took) {
  const Instant now = clock_.now();
  const MutexLock lock(mutex_);
  if (is_suspect) --waiting_;
  const auto silent = silent_.find(host);
  // A fast failure holds no thread for long, so it does not count as silence.
  if (problem.empty() || took < options_.slow) {
    if (silent != silent_.end()) silent_.erase(silent);
    return;
  }
  const Duration wait = silent == silent_.end()
                            ? options_.first
                            : std::min<Duration>(2 * silent->second.wait, options_.max);
  // Pods come and go, so processes that are not called any more are dropped.
  std::erase_if(silent_, [&](const auto& one) { return now > one.second.until + options_.max; });
  silent_[host] = {.until = now + wait, .wait = wait, .problem = problem};
}

template <class Value>
Result<Value> PatientRouterAdmin::call(const std::string& host,
                                       const std::function<Result<Value>()>& exchange) {
  const Entry entry = enter(host);
  if (!entry.problem.empty()) return worker_error(ErrorCode::Unavailable, entry.problem, true);
  const Instant start = clock_.now();
  auto answer = exchange();
  leave(host, entry.is_suspect, answer.ok() ? std::string() : answer.error().message,
        clock_.now() - start);
  return answer;
}

Result<judge::RouterAnswers> PatientRouterAdmin::ask(const Address& router) {
  return call<judge::RouterAnswers>(router.host, [&] { return routers_.ask(router); });
}

Result<std::map<std::string, std::string>> PatientRouterAdmin::settings(const Address& process) {
  return call<std::map<std::string, std::string>>(process.host,
                                                  [&] { return routers_.settings(process); });
}

Result<Done> PatientRouterAdmin::put(const Address& router, const std::string& path,
                                     const object::Value& body) {
  return call<Done>(router.host, [&] { return routers_.put(router, path, body); });
}

std::size_t PatientRouterAdmin::silent() const {
  const MutexLock lock(mutex_);
  return silent_.size();
}

}  // namespace sightline::routers
