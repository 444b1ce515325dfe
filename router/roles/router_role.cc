// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/router_role.h"

#include <optional>
#include <string>
#include <utility>

#include "common/base/bytes.h"
#include "common/contract/metrics_replicas.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_reuse.h"
#include "common/contract/names.h"
#include "common/runtime/entropy.h"

#include "router/cache/audit/audit.h"
#include "router/cache/audit/room_watch.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/index/indexed_cache.h"
#include "router/cache/subscriber/event_subscriber.h"
#include "router/front/admin/index_view.h"
#include "router/front/admin/replicas_view.h"
#include "router/front/admin/workers_view.h"
#include "router/front/proxy/pipeline.h"
#include "router/front/selection/local_selector.h"
#include "router/replicas/followed/followed_feeds.h"
#include "router/replicas/load_exchange/load_exchange.h"
#include "router/roles/audit_wiring.h"
#include "router/roles/feed_watch.h"
#include "router/roles/feeds.h"
#include "router/roles/selection_service.h"
#include "router/workers/fleet/fleet_control.h"

namespace sightline::roles {
namespace {

constexpr char kNoAgentsHeard[] = "--nats is not set: the KV events of its agent cannot arrive";

}  // namespace

// Declared in the order of construction. The destructor goes backwards, so callers end before what
// they call.
struct RouterRole::Parts {
  explicit Parts(const Deps& given)
      : shared(given), index(index::kBlocksMax, &given.memory.share(MemoryShare::Index)) {}

  const Deps shared;
  index::RemovalJournal removals;
  index::ExactIndex index;
  std::shared_ptr<load_exchange::LoadQueue> booked;  // for other routers, null without replicas
  std::optional<fleet::Fleet> fleet;
  std::unique_ptr<subscriber::EventSubscriber> subscriber;
  std::optional<followed::FollowedFeeds> followed;  // only with replicas
  std::optional<Feeds> feeds;
  std::optional<audit::RoomWatch> rooms;  // runs on the audit's thread
  std::optional<audit::Audit> audit;
  std::optional<FeedWatch> watch;
  std::optional<fleet::FleetControl> control;
  std::optional<selection::LocalSelector> selector;
  std::optional<admin::WorkersView> workers_view;
  std::optional<admin::ReplicasView> replicas_view;  // only with replicas
  std::optional<admin::IndexView> index_view;
  std::unique_ptr<SelectionService> service;
  std::optional<load_exchange::LoadExchange> load;  // only with replicas

  Result<Done> build();
  [[nodiscard]] fleet::FleetOptions fleet_options();
  [[nodiscard]] fleet::FleetListeners listeners();
  Result<Done> read_events();
  void hear_agents(process::ReplicaStack& replicas);
  void take_facts(CacheId cache, const operations::CacheFacts& facts);
  void tell_block_size();
  void share_load(process::ReplicaStack& replicas);
  Result<Done> listen();
  [[nodiscard]] std::uint32_t ranks_known() const;
};

Result<Done> RouterRole::Parts::build() {
  const contract::ServeSettings settings = *shared.settings.read();
  // The fleet comes first: the callbacks of all other parts refer to it.
  fleet.emplace(fleet_options(), listeners(), shared.metrics, system_clock());
  SL_TRY(read_events());
  if (shared.replicas != nullptr) hear_agents(*shared.replicas);
  feeds.emplace(*subscriber, followed ? &*followed : nullptr);
  // Before the audit, which calls it.
  rooms.emplace(audit::RoomWatch::Options{}, room_wiring({*feeds, index}), shared.metrics);
  audit::Deps audited = audit_wiring({*feeds, *fleet, index, removals});
  audited.watch_rooms = [this](const std::vector<audit::CacheRoom>& all) {
    rooms->look(all, system_clock().now());
  };
  audit.emplace(audit::Audit::Options{}, std::move(audited), shared.metrics, system_clock());
  watch.emplace(*feeds, shared.model, proxy::scope_model(settings));
  // Its thread begins in start(), when all parts exist.
  control.emplace(settings.fleet, fleet::FleetControl::Deps{.fleet = *fleet,
                                                            .names = shared.names,
                                                            .metrics = shared.metrics,
                                                            .clock = system_clock()});
  selector.emplace(selection::LocalSelector::Deps{
      .settings = shared.settings,
      .fleet = *fleet,
      .index = index,
      .removals = removals,
      .compare = [this](const audit::Answered& answered) { audit->compare(answered); },
      .metrics = shared.metrics,
      .clock = system_clock(),
      .replica = shared.replicas != nullptr ? shared.replicas->name() : std::string()});
  workers_view.emplace(admin::WorkersView::Deps{*fleet, *subscriber, feeds->by_agents(), index,
                                                *audit, *rooms, system_clock()},
                       shared.metrics);
  index_view.emplace(admin::IndexView{.fleet = *fleet, .index = index, .scheme = shared.scheme});
  return Done{};
}

fleet::FleetOptions RouterRole::Parts::fleet_options() {
  const auto settings = shared.settings.read();
  fleet::FleetOptions options{.probe_interval = settings->fleet.probe_interval,
                              .wedge_timeout = settings->fleet.wedge_timeout,
                              .base_names = settings->model.served_names};
  // Alone, no other router needs this router's load.
  if (shared.replicas == nullptr) return options;
  booked = std::make_shared<load_exchange::LoadQueue>();
  // The queue must exist before the first booking. The exchange that reads it starts later.
  options.load.observer = load_exchange::LoadQueue::observer_of(booked);
  return options;
}

fleet::FleetListeners RouterRole::Parts::listeners() {
  fleet::FleetListeners listeners;
  listeners.feed_ready = [this](const fleet::Worker& worker, const fleet::Rank& rank) {
    shared.metrics.begin_worker(contract::kRequestsMetrics, worker.spec.name);
    shared.metrics.begin_worker(contract::kReuseMetrics, worker.spec.name);
    // The audit follows a feed before its first event.
    audit->follow(rank.feed->cache);
    workers_view->feed_ready(worker, rank);
    if (replicas_view) {
      shared.metrics.begin_worker(contract::kReplicasMetrics, worker.spec.name);
      replicas_view->feed_ready(rank.feed->cache);
    }
    // Last: from here on events may arrive.
    watch->feed_ready(worker, rank);
    if (rank.feed->endpoints.by_agent && !followed) {
      // Without NATS no agent can be followed. The worker's reason says so.
      fleet->refuse_feed(rank.feed->cache, kNoAgentsHeard);
    }
  };
  listeners.feed_removed = [this](CacheId cache) {
    workers_view->feed_removed(cache);
    if (replicas_view) replicas_view->feed_removed(cache);
    // The audit ends after the feed, so it sees the last removals.
    watch->feed_removed(cache);
    audit->forget(cache);
  };
  listeners.last_event = [this](CacheId cache) { return feeds->heard_at(cache); };
  return listeners;
}

Result<Done> RouterRole::Parts::read_events() {
  subscriber::SubscriberOptions subscription;
  subscription.held_bytes_max = shared.settings.read()->events.held_bytes_max;
  subscription.held_memory = &shared.memory.share(MemoryShare::Events);
  subscription.handle_memory = &shared.memory.share(MemoryShare::Index);
  subscription.on_change = [this](const events::FeedStatus& status) {
    take_facts(status.cache, status.facts);
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

void RouterRole::Parts::hear_agents(process::ReplicaStack& replicas) {
  followed::FollowedOptions options;
  options.follower.stale_after = shared.settings.read()->replica.stale_after;
  options.held_bytes_max = shared.settings.read()->events.held_bytes_max;
  options.memory = &shared.memory.share(MemoryShare::Events);
  options.on_change = [this](CacheId cache, const operations::CacheFacts& facts) {
    take_facts(cache, facts);
  };
  followed.emplace(std::move(options),
                   followed::FollowedFeeds::Deps{.events = replicas.events(),
                                                 .control = replicas.control(),
                                                 .subjects = replicas.subjects(),
                                                 .sealer = replicas.sealer(),
                                                 .index = index,
                                                 .held = index,
                                                 .removals = removals,
                                                 .clock = system_clock(),
                                                 // Unique among all processes, because agents
                                                 // reply to this name.
                                                 .reader = to_hex(replicas.instance()),
                                                 .draw = runtime::secure_random_u64});
  replicas_view.emplace(admin::ReplicasView::Deps{.control = replicas.control(),
                                                  .events = replicas.events(),
                                                  .membership = replicas.membership(),
                                                  .feeds = *followed,
                                                  .index = index,
                                                  .clock = system_clock()},
                        shared.metrics);
}

void RouterRole::Parts::share_load(process::ReplicaStack& replicas) {
  load_exchange::LoadExchangeOptions options;
  options.supersede = [this](const std::vector<load::ReservationName>& names) {
    for (const auto& name : names) {
      service->api().supersede({name.instance, name.number, name.attempt});
    }
  };
  options.stands = [this](const load::ReservationName& name) {
    return service->api().stands({name.instance, name.number, name.attempt});
  };
  load.emplace(
      load_exchange::LoadExchange::Me{.instance = replicas.instance(), .name = replicas.name()},
      load_exchange::LoadExchange::Deps{.connection = replicas.control(),
                                        .sealer = replicas.sealer(),
                                        .subjects = replicas.subjects(),
                                        .book = fleet->load_book(),
                                        .queue = booked,
                                        .metrics = shared.metrics,
                                        .clock = system_clock()},
      std::move(options));
  replicas_view->add_part("load", [this] { return load->json(); });
}

Result<Done> RouterRole::Parts::listen() {
  const contract::ServeSettings settings = *shared.settings.read();
  SelectionService::Options options{.settings = settings.selection,
                                    .identity = shared.identity,
                                    .scope_model = proxy::scope_model(settings),
                                    .open_files = shared.open_files,
                                    .memory = shared.memory,
                                    .listens = shared.has_selection_port};
  // Takeovers are published even if they came before the exchange runs.
  if (booked) {
    options.on_taken = [queue = booked](const std::vector<leases::Name>& names) {
      std::vector<load::ReservationName> taken;
      taken.reserve(names.size());
      for (const auto& name : names) taken.push_back({name.instance, name.number, name.attempt});
      queue->put_taken(std::move(taken));
    };
  }
  std::function<std::string()> stale;
  // Frontends ask other routers first while this one receives NATS late.
  if (followed) stale = [this] { return followed->nats().stale; };
  service = SL_TRY(SelectionService::create(
      options, {shared.pool, *selector, *fleet, shared.scheme, shared.metrics, shared.ready, stale,
                [this] { return ranks_known(); }}));
  return Done{};
}

// As soon as the NATS connection ends, agents' blocks are the past.
std::uint32_t RouterRole::Parts::ranks_known() const {
  const bool hears_agents = shared.replicas != nullptr && shared.replicas->events().connected();
  std::uint32_t known = 0;
  const auto snapshot = fleet->snapshot();
  for (const auto& worker : snapshot->workers) {
    for (const fleet::Rank& rank : worker->ranks) {
      const bool is_heard = rank.feed && (hears_agents || !rank.feed->endpoints.by_agent);
      if (is_heard && worker->is_precise(rank)) ++known;
    }
  }
  return known;
}

// Runs on the threads that follow engines and agents.
void RouterRole::Parts::take_facts(CacheId cache, const operations::CacheFacts& facts) {
  fleet->take_facts(cache, facts);
  if (shared.replicas != nullptr) tell_block_size();
}

void RouterRole::Parts::tell_block_size() {
  membership::Membership& members = shared.replicas->membership();
  const std::uint32_t tokens = fleet->snapshot()->block_size;
  // The size is known only after the first events, and changes rarely.
  if (tokens == 0 || members.mine().block_size == tokens) return;
  members.update([tokens](membership::Announcement& mine) { mine.block_size = tokens; });
}

RouterRole::RouterRole(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RouterRole::~RouterRole() = default;

Result<std::unique_ptr<RouterRole>> RouterRole::create(const Deps& shared) {
  auto parts = std::make_unique<Parts>(shared);
  SL_TRY(parts->build());
  return std::make_unique<RouterRole>(std::move(parts));
}

Result<Done> RouterRole::listen() { return parts_->listen(); }

void RouterRole::start(const std::vector<contract::WorkerSpec>& workers) {
  parts_->control->start(workers);
  const Deps& shared = parts_->shared;
  // After the first list: the exchange names ranks that the fleet knows.
  if (shared.replicas != nullptr) parts_->share_load(*shared.replicas);
}

void RouterRole::set_workers(std::vector<contract::WorkerSpec> workers) {
  parts_->control->set_workers(std::move(workers));
}

void RouterRole::add_to_replicas(std::string name, std::function<std::string()> json) {
  if (parts_->replicas_view) parts_->replicas_view->add_part(std::move(name), std::move(json));
}

void RouterRole::add_admin(admin_port::AdminServer& admin) {
  Parts* const parts = parts_.get();
  admin.add_check("engines", [parts] { return fleet::check_serving(*parts->fleet->snapshot()); });
  admin.add_route("GET", std::string(contract::kWorkersPath),
                  [parts](const admin_port::AdminRequest&) {
                    return admin_port::AdminResponse{.body = parts->workers_view->json()};
                  });
  if (parts->followed) {
    // The router stays ready. If all routers were cut off, no router would serve otherwise.
    admin.add_noted_check(
        "nats", [parts]() -> Result<std::string> { return parts->followed->nats().stale; });
  }
  if (parts->replicas_view) {
    admin.add_route("GET", std::string(contract::kReplicasPath),
                    [parts](const admin_port::AdminRequest&) {
                      return admin_port::AdminResponse{.body = parts->replicas_view->json()};
                    });
  }
  admin.add_route(
      "GET", std::string(contract::kIndexPath),
      [parts](const admin_port::AdminRequest& request) { return parts->index_view->run(request); });
}

void RouterRole::refresh_metrics() {
  parts_->workers_view->refresh();
  if (parts_->replicas_view) parts_->replicas_view->refresh();
}

void RouterRole::drain() {
  if (parts_->service) parts_->service->stop();
}
std::optional<std::uint16_t> RouterRole::selection_port() const { return parts_->service->port(); }
void RouterRole::stop() {
  // The others must not count load that no request uses any more.
  if (parts_->load) parts_->load->stop();
  parts_->control->stop();
}

const fleet::Fleet& RouterRole::fleet() const { return *parts_->fleet; }
selection::Selector& RouterRole::selector() { return *parts_->selector; }

}  // namespace sightline::roles
