// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/installation/installation_check.h"

#include <optional>
#include <utility>

#include "operator/kube/election/election.h"
#include "operator/owned/kinds.h"

namespace sightline::installation {
namespace {

using client::Reason;

constexpr std::chrono::seconds kPause{1};

// The result of an attempt: done, or the reason why not yet.
using Attempt = std::function<Result<Done>()>;

// Repeats an attempt until it is done, until no further attempt can help, or until the time is
// over.
Result<Done> until(Instant end, const CheckAround& deps, const Attempt& attempt) {
  std::string told;
  for (;;) {
    Result<Done> tried = attempt();
    if (tried.ok() || !tried.error().retryable) return tried;
    if (deps.clock.now() >= end) return tried;
    if (tried.error().message != told) deps.said("waiting: " + tried.error().message);
    told = tried.error().message;
    if (!deps.pause(kPause)) return client_error(ErrorCode::Cancelled, "stopped");
  }
}

Error not_yet(std::string message) {
  return worker_error(ErrorCode::Unavailable, std::move(message), true);
}

Result<Done> kinds_are_served(client::ApiClient& api, const std::string& name_space) {
  const auto list =
      api.list(owned::routers_resource(), {.of = {.name_space = name_space}, .limit = 1});
  if (list.ok()) return Done{};
  const client::Failure& failure = list.error();
  if (failure.reason == Reason::NotFound) {
    return client_error(ErrorCode::NotFound,
                        "the API server has no kind MultimodalRouter: install the kinds with the "
                        "chart's crds.enabled=true or kubectl apply -f crds.yaml");
  }
  if (failure.reason == Reason::Forbidden) {
    return client_error(ErrorCode::Unauthorized,
                        "no right to read MultimodalRouters: " + failure.message +
                            ". The chart's rbac.create=true gives the right");
  }
  return not_yet("cannot list MultimodalRouters: " + failure.message);
}

// Needs two different renewals by one holder, because a single Lease may be left by an operator
// that has ended.
class Renewal {
 public:
  Result<Done> look(client::ApiClient& api, const object::Key& key) {
    const auto lease = api.get(election::lease_resource(), key);
    const std::string name = object::text_of(key);
    if (client::failed(lease, Reason::Forbidden)) {
      return client_error(ErrorCode::Unauthorized,
                          "no right to read the Lease: " + lease.error().message);
    }
    if (client::failed(lease, Reason::NotFound)) {
      return not_yet("no operator has taken the Lease " + name + " yet");
    }
    if (!lease.ok()) return not_yet("cannot read the Lease: " + lease.error().message);
    holder_ = lease->at({"spec", "holderIdentity"}).text();
    if (holder_.empty()) return not_yet("no operator holds the Lease " + name);
    const std::string renewed(lease->at({"spec", "renewTime"}).text());
    if (std::exchange(seen_, renewed).value_or(renewed) != renewed) return Done{};
    return not_yet(holder_ + " holds the Lease " + name +
                   " and has not renewed it during this check");
  }
  [[nodiscard]] const std::string& holder() const { return holder_; }

 private:
  std::string holder_;
  std::optional<std::string> seen_;  // its renewTime
};

}  // namespace

Result<Done> check_installation(const CheckOptions& options, const CheckAround& deps) {
  const Instant end = deps.clock.now() + options.time_max;
  std::vector<std::string> name_spaces = options.name_spaces;
  // The empty name means all namespaces.
  if (name_spaces.empty()) name_spaces.emplace_back();
  for (const std::string& one : name_spaces) {
    SL_TRY(until(end, deps, [&] { return kinds_are_served(deps.api, one); }));
  }
  deps.said(
      "ok: the API server has the kind MultimodalRouter, and this check can read its objects");
  if (options.lease.name.empty()) {
    deps.said("not checked: whether an operator runs (leader election is off)");
    return Done{};
  }
  Renewal renewal;
  SL_TRY(until(end, deps, [&] { return renewal.look(deps.api, options.lease); }));
  deps.said("ok: an operator leads: " + renewal.holder());
  return Done{};
}

}  // namespace sightline::installation
