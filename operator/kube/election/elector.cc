// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/election/elector.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/log.h"
#include "common/contract/controller_metrics.h"

namespace sightline::election {
namespace {

constexpr int kReleaseTries = 3;
// The length of one wait, because the clocks of tests move during a wait.
constexpr std::chrono::milliseconds kLookMax{500};

}  // namespace

Elector::Elector(Options options, client::ApiClient& api, const Clock& clock,
                 runtime::Metrics& metrics)
    : election_(options.election, options.seed),
      api_(api),
      clock_(clock),
      told_(std::move(options.told)),
      leads_gauge_(metrics.gauge(contract::kLeaderStatus, {options.election.lease.name})),
      slow_paths_(metrics.counter(contract::kLeaderSlowpathTotal, {options.election.lease.name})),
      thread_("kube-elector", [this](const std::stop_token& stop) { run(stop); }) {}

bool Elector::still_leads() const {
  // One atomic load, because each write of any thread asks.
  return clock_.now().time_since_epoch().count() < leads_until_.load(std::memory_order_acquire);
}

void Elector::publish() {
  const auto until = election_.leads_until();
  leads_until_.store(until ? until->time_since_epoch().count() : 0, std::memory_order_release);
  leads_gauge_.set(until ? 1 : 0);
  slow_paths_.add(static_cast<double>(election_.slow_paths() - slow_paths_told_));
  slow_paths_told_ = election_.slow_paths();
}

void Elector::run(const std::stop_token& stop) {
  bool was_leader = false;
  while (!stop.stop_requested()) {
    const Want want = election_.next(clock_.now(), clock_.wall());
    // The thread ends here: a process that lost its lease must end and never leads again.
    if (std::holds_alternative<Lost>(want)) {
      publish();
      log(LogLevel::Error, "this process has lost the Lease");
      if (told_.on_lost) told_.on_lost();
      return;
    }
    if (const auto* wait = std::get_if<WantWait>(&want)) {
      const MutexLock lock(mutex_);
      const Duration left = std::min<Duration>(wait->until - clock_.now(), kLookMax);
      never_.wait_until(mutex_, stop, system_clock().now() + left, []() { return false; });
      continue;
    }
    ask(want);
    publish();
    if (election_.is_leader() && !std::exchange(was_leader, true)) {
      log(LogLevel::Info, "this process is the leader");
      if (told_.on_lead) told_.on_lead();
    }
  }
}

void Elector::ask(const Want& want) {
  // Before the request: the lease counts from then.
  const Instant sent_at = clock_.now();
  client::Answer<object::Value> answer = object::Value();
  if (const auto* create = std::get_if<WantCreate>(&want)) {
    answer = api_.create(lease_resource(), create->lease);
  } else if (const auto* update = std::get_if<WantUpdate>(&want)) {
    answer = api_.update(lease_resource(), update->lease);
  } else {
    answer = api_.get(lease_resource(), election_.lease());
  }
  election_.on_answer(sent_at, clock_.now(), answer);
}

void Elector::release() {
  thread_.request_stop();
  thread_.join();
  // Before the lease is free, so no write can follow.
  leads_until_.store(0, std::memory_order_release);
  leads_gauge_.set(0);
  for (int i = 0; i < kReleaseTries; ++i) {
    const auto lease = election_.released(clock_.wall());
    if (!lease) return;
    const Instant now = clock_.now();
    const auto written = api_.update(lease_resource(), *lease);
    if (written.ok() || !failed(written, client::Reason::Conflict)) return;
    // Another writer has changed the lease, for example its labels. Read it and release again.
    election_.on_conflict(now, api_.get(lease_resource(), election_.lease()));
  }
}

}  // namespace sightline::election
