// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/router_role.h"

#include <optional>
#include <string>
#include <utility>

#include "common/contract/names.h"

#include "router/cache/audit/audit.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/index/indexed_cache.h"
#include "router/cache/subscriber/zmq_subscriber.h"
#include "router/front/admin/index_view.h"
#include "router/front/admin/workers_view.h"
#include "router/front/proxy/pipeline.h"
#include "router/front/selection/local_selector.h"
#include "router/roles/audit_wiring.h"
#include "router/roles/feed_watch.h"
#include "router/workers/fleet/fleet_control.h"

namespace sightline::roles {

// Declared in the order of making; the destructor goes backwards.
struct RouterRole::Parts {
  explicit Parts(const Shared& given) : shared(given) {}

  const Shared shared;
  index::RemovalJournal removals;
  index::ExactIndex index;
  std::optional<fleet::Fleet> fleet;
  std::unique_ptr<subscriber::EventSubscriber> subscriber;
  std::optional<audit::Audit> audit;
  std::optional<FeedWatch> watch;
  std::optional<fleet::FleetControl> control;
  std::optional<selection::LocalSelector> selector;
  std::optional<admin::WorkersView> workers_view;
  std::optional<admin::IndexView> index_view;

  Result<Done> build();
  [[nodiscard]] fleet::FleetListeners listeners();
  Result<Done> read_events();
};

Result<Done> RouterRole::Parts::build() {
  const contract::ServeSettings& settings = shared.settings;
  fleet.emplace(fleet::Fleet::Options{.probe_interval = settings.fleet.probe_interval}, listeners(),
                shared.metrics, system_clock());
  SL_TRY(read_events());
  audit.emplace(audit::Audit::Options{}, audit_wiring({*subscriber, *fleet, index, removals}),
                shared.metrics, system_clock());
  watch.emplace(*subscriber, shared.model, proxy::scope_model(settings));
  control.emplace(settings.fleet, fleet::FleetControl::Dependencies{.fleet = *fleet,
                                                                    .names = shared.names,
                                                                    .metrics = shared.metrics,
                                                                    .clock = system_clock()});
  selector.emplace(selection::LocalSelector::Sources{
      .settings = settings.routing,
      .fleet = *fleet,
      .index = index,
      .removals = removals,
      .compare = [this](const audit::Answered& answered) { audit->compare(answered); },
      .metrics = shared.metrics,
      .clock = system_clock()});
  workers_view.emplace(admin::WorkersView::Sources{*fleet, *subscriber, index, *audit},
                       shared.metrics);
  index_view.emplace(admin::IndexView{.fleet = *fleet, .index = index, .scheme = shared.scheme});
  return Done{};
}

fleet::FleetListeners RouterRole::Parts::listeners() {
  fleet::FleetListeners listeners;
  listeners.feed_ready = [this](const fleet::Worker& worker, const fleet::Rank& rank) {
    audit->follow(rank.feed->cache);
    workers_view->feed_ready(worker, rank);
    watch->feed_ready(worker, rank);
  };
  listeners.feed_removed = [this](CacheId cache) {
    workers_view->feed_removed(cache);
    watch->feed_removed(cache);
    audit->forget(cache);
  };
  listeners.last_event = [this](CacheId cache) {
    const auto status = subscriber->status(cache);
    return status ? status->heard_at : Instant{};
  };
  return listeners;
}

Result<Done> RouterRole::Parts::read_events() {
  subscriber::SubscriberOptions subscription;
  subscription.held_bytes_max = shared.settings.events.held_bytes_max;
  subscription.on_change = [this](const events::FeedStatus& status) {
    fleet->take_facts(status.cache, status.facts);
  };
  subscription.on_refused = [this](CacheId cache, const Error& error) {
    fleet->refuse_feed(cache, error.message);
  };
  subscription.names = &shared.names;
  const auto sinks = [this](CacheId cache) {
    return std::make_unique<index::IndexedCache>(cache, index, &removals);
  };
  subscriber = SL_TRY(
      subscriber::EventSubscriber::create(subscription, shared.scheme, sinks, system_clock()));
  return Done{};
}

RouterRole::RouterRole(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RouterRole::~RouterRole() = default;

Result<std::unique_ptr<RouterRole>> RouterRole::create(const Shared& shared) {
  auto parts = std::make_unique<Parts>(shared);
  SL_TRY(parts->build());
  return std::make_unique<RouterRole>(std::move(parts));
}

void RouterRole::start() { parts_->control->start(parts_->shared.settings.workers); }

void RouterRole::reload_workers(Result<std::vector<contract::WorkerSpec>> workers) {
  parts_->control->reload_workers(std::move(workers));
}

void RouterRole::add_admin(runtime::AdminServer& admin) {
  Parts* const parts = parts_.get();
  admin.add_check("engines", [parts] { return fleet::check_serving(*parts->fleet->snapshot()); });
  admin.add_route("GET", std::string(contract::kWorkersPath),
                  [parts](const runtime::AdminRequest&) {
                    return runtime::AdminResponse{.body = parts->workers_view->json()};
                  });
  admin.add_route(
      "GET", std::string(contract::kIndexPath),
      [parts](const runtime::AdminRequest& request) { return parts->index_view->run(request); });
}

void RouterRole::refresh_metrics() { parts_->workers_view->refresh(); }
void RouterRole::stop() { parts_->control->stop(); }

const fleet::Fleet& RouterRole::fleet() const { return *parts_->fleet; }
selection::Selector& RouterRole::selector() { return *parts_->selector; }

}  // namespace sightline::roles
