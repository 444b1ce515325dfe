// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/worker_lists.h"

#include <utility>

#include "common/base/log.h"
#include "common/contract/metrics_process.h"

namespace sightline::push {

using contract::WorkerSpec;
using lists::InForce;
using lists::PushedList;
using lists::Source;
using lists::Verdict;

namespace {

std::string_view kind_of(Source from) { return from == Source::Peers ? "peers" : "workers"; }

std::string_view words_of(Source source) {
  switch (source) {
    case Source::None:
      return "no list";
    case Source::File:
      return "from flags, environment and file";
    case Source::Peers:
      return "pushed to a peer";
    case Source::Push:
      return "pushed";
  }
  return "no list";
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::TakeOver:
      return "taken";
    case Verdict::Same:
      return "same";
    case Verdict::OtherRevision:
      return "other-revision";
    case Verdict::Older:
      return "older";
    case Verdict::Forked:
      return "forked";
    case Verdict::TooFar:
      return "too-far";
  }
  return "same";
}

WorkerLists::WorkerLists(Around around)
    : around_(std::move(around)), in_force_(std::make_shared<const InForce>()) {
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
    around_.hand_over(now->workers);
  }
  log(LogLevel::Info, "no peer has a pushed worker list",
      {{"workers", now->workers.size()}, {"source", lists::name_of(now->source)}});
  set_gauges(*now);
}

void WorkerLists::reread(Result<std::vector<WorkerSpec>> boot) {
  const auto count = [this](std::string_view result) {
    around_.metrics.counter(contract::kConfigReloadsTotal, {result}).add();
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
      around_.hand_over(now->workers);
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

Result<WorkerLists::Offered> WorkerLists::offer(std::string body, Source from) {
  auto list = lists::parse_pushed_workers(body);
  if (!list.ok()) {
    around_.metrics.counter(contract::kPushesTotal, {kind_of(from), "malformed"}).add();
    return list.error();
  }
  // The digest is computed without the lock.
  const std::uint64_t digest = lists::digest_of(*list);
  const auto pushed =
      std::make_shared<const PushedList>(PushedList{std::move(*list), std::move(body), digest});
  Offered offered = judge_and_take(pushed, from);
  tell(offered, from);
  return offered;
}

WorkerLists::Offered WorkerLists::judge_and_take(const std::shared_ptr<const PushedList>& pushed,
                                                 Source from) {
  // The last owner of the previous list frees it after the lock.
  std::shared_ptr<const InForce> before;
  Offered offered;
  {
    const MutexLock lock(mutex_);
    before = in_force_;
    offered.verdict = lists::judge(around_.revision,
                                   before->pushed ? &before->pushed->list : nullptr, pushed->list);
    if (offered.verdict == Verdict::TakeOver) {
      in_force_ = std::make_shared<const InForce>(lists::with_push(*before, pushed, from));
      // A pushed list has priority, so no list waits for the peers after it.
      asks_peers_ = false;
      around_.hand_over(in_force_->workers);
    }
    offered.in_force = in_force_;
  }
  if (offered.verdict == Verdict::TakeOver) {
    offered.difference = lists::difference(before->workers, offered.in_force->workers);
  }
  return offered;
}

void WorkerLists::tell(const Offered& offered, Source from) const {
  around_.metrics.counter(contract::kPushesTotal, {kind_of(from), name_of(offered.verdict)}).add();
  if (offered.verdict != Verdict::TakeOver) return;
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
  if (around_.on_taken) around_.on_taken(now);
}

void WorkerLists::set_gauges(const InForce& now) const {
  around_.metrics.gauge(contract::kWorkerListGeneration).set(static_cast<double>(now.generation()));
  for (const Source source : lists::kSources) {
    around_.metrics.gauge(contract::kWorkerListSource, {lists::name_of(source)})
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
  if (now->source == Source::None) {
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
  std::string note = std::to_string(now->workers.size()) + " " + std::string(words_of(now->source));
  if (now->pushed) note += ", generation " + std::to_string(now->generation());
  return note;
}

}  // namespace sightline::push
