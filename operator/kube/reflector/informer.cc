// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/reflector/informer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/log.h"
#include "common/contract/controller_metrics.h"

#include "operator/kube/object/metadata.h"

namespace sightline::reflector {

using client::Failure;

namespace {

// The length of one read of a watch, because the clocks of tests move during it.
constexpr std::chrono::seconds kLookMax{5};

}  // namespace

Informer::Informer(Options options, client::ApiClient& api, const Clock& clock,
                   runtime::Metrics& metrics)
    : options_(std::move(options)),
      api_(api),
      clock_(clock),
      metrics_(metrics),
      reflector_(options_.rules, options_.seed),
      store_(options_.indexes),
      thread_("kube-informer", [this](const std::stop_token& stop) { run(stop); }) {}

bool Informer::has_synced() const {
  const MutexLock lock(mutex_);
  return has_synced_;
}

bool Informer::wait_until_synced(const std::stop_token& stop, Duration time_max) const {
  const MutexLock lock(mutex_);
  return changed_.wait_until(mutex_, stop, system_clock().now() + time_max,
                             [this]() SL_REQUIRES(mutex_) { return has_synced_; });
}

bool Informer::is_known() const {
  const MutexLock lock(mutex_);
  return is_known_;
}

void Informer::set_known(bool is_known) {
  {
    const MutexLock lock(mutex_);
    has_synced_ = true;
    is_known_ = is_known;
  }
  changed_.notify_all();
}

void Informer::on_list_failed(const Failure& failure) {
  const bool is_missing =
      failure.reason == client::Reason::NotFound || failure.reason == client::Reason::Forbidden;
  if (!options_.is_optional || !is_missing) {
    log(LogLevel::Warn, "cannot list objects",
        {{"resource", options_.resource.plural}, {"problem", failure.message}});
    // Only the first time, or the log would repeat it for ever.
  } else if (!has_synced() || is_known()) {
    log(LogLevel::Info, "an optional kind is missing or not readable: trying again later",
        {{"resource", options_.resource.plural}, {"problem", failure.message}});
    // Objects of a deleted kind are gone too.
    apply({.what = StoreChange::ChangeKind::Replace, .objects = {}});
    set_known(false);
  }
  reflector_.on_list_failed(clock_.now(), failure);
}

void Informer::count_list(std::string_view result) {
  metrics_.counter(contract::kReflectorListsTotal, {options_.resource.plural, result}).add();
}

void Informer::count_watch(std::string_view end) {
  metrics_.counter(contract::kReflectorWatchesTotal, {options_.resource.plural, end}).add();
}

void Informer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Want want = reflector_.next(clock_.now());
    if (const auto* wait = std::get_if<WantWait>(&want)) wait_until(wait->until, stop);
    if (const auto* asked = std::get_if<WantList>(&want)) list(*asked);
    if (const auto* asked = std::get_if<WantWatch>(&want)) watch(*asked, stop);
  }
}

void Informer::wait_until(Instant when, const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  const Duration left = std::min<Duration>(when - clock_.now(), kLookMax);
  changed_.wait_until(mutex_, stop, system_clock().now() + left, []() { return false; });
}

void Informer::list(const WantList& want) {
  auto page = api_.list(options_.resource, {.of = options_.of,
                                            .resource_version = want.resource_version,
                                            .limit = want.limit,
                                            .continue_from = want.continue_from});
  count_list(page.ok() ? "ok" : client::name_of(page.error().reason));
  if (!page.ok()) return on_list_failed(page.error());
  for (object::Value& object : page->items) strip(object);
  auto change = reflector_.on_list(std::move(*page));
  if (!change) return;
  apply(std::move(*change));
  set_known(true);
}

void Informer::watch(const WantWatch& want, const std::stop_token& stop) {
  auto opened = api_.watch(
      options_.resource,
      {.of = options_.of, .resource_version = want.resource_version, .timeout = want.timeout});
  const Instant now = clock_.now();
  if (!opened.ok()) {
    count_watch(client::name_of(opened.error().reason));
    return reflector_.on_watch_failed(now, opened.error());
  }
  reflector_.on_watch_opened(now);
  client::Watch& stream = **opened;
  // A stop must end a read that waits for the server.
  const std::stop_callback cancel(stop, [&stream] { stream.cancel(); });
  const End end = follow(stream, stop);
  // The server would keep an abandoned watch open.
  stream.cancel();
  count_watch(end.is_said ? "error" : end.failure ? client::name_of(end.failure->reason) : "ended");
  if (!end.is_said) reflector_.on_watch_ended(clock_.now(), end.failure);
}

Informer::End Informer::follow(client::Watch& watch, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Duration left = reflector_.silence_left(clock_.now());
    if (left == Duration::zero()) {
      Failure silent;
      silent.reason = client::Reason::Deadline;
      return {.is_said = false, .failure = silent};
    }
    auto event = watch.next(std::min<Duration>(left, kLookMax));
    if (!event.ok()) return {.is_said = false, .failure = std::move(event).error()};
    if (event->what == client::WatchEvent::EventKind::Ended) return {};
    if (event->what == client::WatchEvent::EventKind::Silent) continue;
    // An ERROR carries a Status, which is needed whole.
    if (event->type != "ERROR") strip(event->object);
    auto seen = reflector_.on_event(clock_.now(), event->type, std::move(event->object));
    if (seen.is_unknown) {
      log(LogLevel::Warn, "a watch event has an unknown type",
          {{"resource", options_.resource.plural}, {"type", event->type}});
    }
    if (seen.change) apply(std::move(*seen.change));
    if (seen.is_watch_over) return {.is_said = true, .failure = {}};
  }
  return {};
}

// Object by object, so a list of thousands is never in memory whole.
void Informer::strip(object::Value& object) const {
  object::strip_for_cache(object);
  if (options_.trim) options_.trim(object);
}

void Informer::apply(StoreChange change) {
  // Reads the size before and after, because a change may replace all objects.
  const auto before = static_cast<double>(store_.size());
  const std::vector<Change> changes = store_.apply(std::move(change));
  // A resource may have informers for several namespaces, so the gauge adds up.
  metrics_.gauge(contract::kReflectorObjects, {options_.resource.plural})
      .add(static_cast<double>(store_.size()) - before);
  if (!options_.on_change) return;
  for (const Change& one : changes) options_.on_change(one);
}

}  // namespace sightline::reflector
