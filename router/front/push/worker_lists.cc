// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/worker_lists.h"

#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_process.h"

namespace sightline::push {

using contract::WorkerSpec;
using lists::InForce;
using lists::ListSource;
using lists::ListVerdict;
using lists::PushedList;

namespace {

std::string_view kind_of(ListSource from) {
  return from == ListSource::Peers ? "peers" : "workers";
}

std::string_view describe_failure(ListSource source) {
  switch (source) {
    case ListSource::None:
      return "no list";
    case ListSource::File:
      return "from flags, environment and file";
    case ListSource::Peers:
      return "pushed to a peer";
    case ListSource::Push:
      return "pushed";
  }
  return "no list";
}

}  // namespace

std::string_view name_of(ListVerdict verdict) {
  switch (verdict) {
    case ListVerdict::TakeOver:
      return "taken";
    case ListVerdict::Same:
      return "same";
    case ListVerdict::OtherRevision:
      return "other-revision";
    case ListVerdict::Older:
      return "older";
    case ListVerdict::Forked:
      return "forked";
    case ListVerdict::TooFar:
      return "too-far";
  }
  return "same";
}

WorkerLists::WorkerLists(Deps deps)
    : deps_(std::move(deps)), in_force_(std::make_shared<const InForce>()) {
  set_gauges(*in_force_);
}

void WorkerLists::boot(std::optional<std::vector<WorkerSpec>> workers, bool asks_peers) {
  std::shared_ptr<const InForce> now;
  {
    const MutexLock lock(mutex_);
    InForce next = *in_force_;
    asks_peers_ = asks_peers;
    has_boot_ = workers.has_value();
    if (workers) next.boot = std::move(*workers);
    if (has_boot_ && !asks_peers) next = lists::with_boot(next, std::move(next.boot));
    in_force_ = now = std::make_shared<const InForce>(std::move(next));
  }
  set_gauges(*now);
}

void WorkerLists::boot_without_peers() {
  std::shared_ptr<const InForce> now;
  {
    const MutexLock lock(mutex_);
    // A pushed list has priority over the list of the start.
    if (!std::exchange(asks_peers_, false) || in_force_->pushed || !has_boot_) return;
    in_force_ = now =
        std::make_shared<const InForce>(lists::with_boot(*in_force_, in_force_->boot));
    // Called under the lock, because the fleet must get the lists in their order.
    deps_.hand_over(now->workers);
  }
  log(LogLevel::Info, "no peer has a pushed worker list",
      {{"workers", now->workers.size()}, {"source", lists::name_of(now->source)}});
  set_gauges(*now);
}

void WorkerLists::reread(Result<std::vector<WorkerSpec>> boot) {
  const auto count = [this](std::string_view result) {
    deps_.metrics.counter(contract::kConfigReloadsTotal, {result}).add();
  };
  if (!boot.ok()) {
    count("refused");
    log(LogLevel::Error, "configuration rejected: the workers stay unchanged",
        {{"reason", boot.error().message}});
    return;
  }
  const std::size_t workers = boot->size();
  std::shared_ptr<const InForce> now;
  {
    const MutexLock lock(mutex_);
    has_boot_ = true;
    // The peers have not answered yet. The new list of the start waits as the old one did.
    if (asks_peers_) {
      InForce next = *in_force_;
      next.boot = std::move(*boot);
      in_force_ = now = std::make_shared<const InForce>(std::move(next));
    } else {
      in_force_ = now =
          std::make_shared<const InForce>(lists::with_boot(*in_force_, std::move(*boot)));
      deps_.hand_over(now->workers);
    }
  }
  if (now->pushed) {
    count("outranked");
    log(LogLevel::Warn, "configuration changed: its workers are ignored because a list was pushed",
        {{"workers", workers}, {"generation", now->generation()}});
    return;
  }
  count("applied");
  log(LogLevel::Info, "configuration changed", {{"workers", workers}});
  set_gauges(*now);
}

Result<WorkerLists::OfferResult> WorkerLists::offer(std::string body, ListSource from) {
  auto list = lists::parse_pushed_workers(body);
  if (!list.ok()) {
    deps_.metrics.counter(contract::kPushesTotal, {kind_of(from), "malformed"}).add();
    return list.error();
  }
  // The digest is computed without the lock.
  const std::uint64_t digest = lists::digest_of(*list);
  const auto pushed =
      std::make_shared<const PushedList>(PushedList{std::move(*list), std::move(body), digest});
  OfferResult offered = judge_and_take(pushed, from);
  tell(offered, from);
  return offered;
}

WorkerLists::OfferResult WorkerLists::judge_and_take(
    const std::shared_ptr<const PushedList>& pushed, ListSource from) {
  // The last owner of the previous list frees it after the lock.
  std::shared_ptr<const InForce> before;
  OfferResult offered;
  {
    const MutexLock lock(mutex_);
    before = in_force_;
    offered.verdict = lists::judge(deps_.revision, before->pushed ? &before->pushed->list : nullptr,
                                   pushed->list);
    if (offered.verdict == ListVerdict::TakeOver) {
      in_force_ = std::make_shared<const InForce>(lists::with_push(*before, pushed, from));
      // A pushed list has priority, so no list waits for the peers after it.
      asks_peers_ = false;
      deps_.hand_over(in_force_->workers);
    }
    offered.in_force = in_force_;
  }
  if (offered.verdict == ListVerdict::TakeOver) {
    offered.difference = lists::difference(before->workers, offered.in_force->workers);
  }
  return offered;
}

void WorkerLists::tell(const OfferResult& offered, ListSource from) const {
  deps_.metrics.counter(contract::kPushesTotal, {kind_of(from), name_of(offered.verdict)}).add();
  if (offered.verdict != ListVerdict::TakeOver) return;
  const InForce& now = *offered.in_force;
  log(LogLevel::Info, "applied a pushed worker list",
      {{"source", lists::name_of(from)},
       {"generation", now.generation()},
       {"workers", now.workers.size()},
       {"added", offered.difference.added.size()},
       {"removed", offered.difference.removed.size()},
       {"changed", offered.difference.changed.size()}});
  // A later list may count by now. The gauges must show the newest one.
  set_gauges(*in_force());
  if (deps_.on_taken) deps_.on_taken(now);
}

void WorkerLists::set_gauges(const InForce& now) const {
  deps_.metrics.gauge(contract::kWorkerListGeneration).set(static_cast<double>(now.generation()));
  for (const ListSource source : lists::kSources) {
    deps_.metrics.gauge(contract::kWorkerListSource, {lists::name_of(source)})
        .set(source == now.source ? 1 : 0);
  }
}

std::shared_ptr<const InForce> WorkerLists::in_force() const {
  const MutexLock lock(mutex_);
  return in_force_;
}

Result<std::string> WorkerLists::check() const {
  std::shared_ptr<const InForce> now;
  bool asks_peers = false;
  {
    const MutexLock lock(mutex_);
    now = in_force_;
    asks_peers = asks_peers_;
  }
  if (now->source == ListSource::None) {
    return Error{
        ErrorCode::Unavailable,
        Blame::Internal,
        true,
        asks_peers
            ? "no worker list yet: asking peers for the newest one"
            : "no worker list: flags, environment and file have no workers, and no list was pushed",
        {},
        {}};
  }
  std::string note =
      std::to_string(now->workers.size()) + " " + std::string(describe_failure(now->source));
  if (now->pushed) note += ", generation " + std::to_string(now->generation());
  return note;
}

}  // namespace sightline::push
