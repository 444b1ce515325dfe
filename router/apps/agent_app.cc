// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/apps/agent_app.h"

#include <optional>
#include <utility>

#include "common/admin_port/admin_server.h"
#include "common/base/authority.h"
#include "common/base/log.h"
#include "common/contract/metrics_process.h"
#include "common/contract/names.h"
#include "common/hosts/lookup.h"
#include "common/runtime/entropy.h"
#include "common/runtime/metrics.h"
#include "common/runtime/token_file.h"

#include "router/apps/agent_drain.h"
#include "router/apps/agent_view.h"
#include "router/cache/subscriber/event_subscriber.h"
#include "router/front/admin/event_metrics.h"
#include "router/front/push/put_guard.h"
#include "router/process/process_identity.h"
#include "router/process/replica_stack.h"
#include "router/prompt/prepare/model.h"
#include "router/replicas/agent/agent_streams.h"
#include "router/roles/feed_watch.h"
#include "router/roles/feeds.h"
#include "router/workers/fleet/config_watch.h"
#include "router/workers/fleet/fleet.h"
#include "router/workers/fleet/fleet_control.h"

namespace sightline::apps {
namespace {

// In a configuration, `agent` means that another process reads the worker's events. In an agent,
// that process is this one.
std::vector<contract::WorkerSpec> read_here(std::vector<contract::WorkerSpec> workers) {
  for (contract::WorkerSpec& worker : workers) worker.agent = false;
  return workers;
}

}  // namespace

// Declared in the order of construction. The destructor goes backwards. stop() has another order,
// because routers must be informed.
struct AgentApp::Parts {
  Parts(AgentOptions given, contract::IdentityKey key,
        std::shared_ptr<const prepare::LoadedModel> loaded)
      : options(std::move(given)), identity(key), scheme(identity), model(std::move(loaded)) {}

  AgentOptions options;
  contract::IdentityKey identity;
  keys::Scheme scheme;
  std::shared_ptr<const prepare::LoadedModel> model;
  runtime::Metrics metrics;
  hosts::Lookup names{system_clock(), &metrics};
  admin::EventMetrics event_metrics{metrics};
  std::unique_ptr<process::ReplicaStack> replicas;
  std::optional<fleet::Fleet> fleet;
  std::optional<agent::AgentStreams> streams;
  std::unique_ptr<subscriber::EventSubscriber> subscriber;
  std::optional<roles::Feeds> feeds;  // all engines are read here
  std::optional<roles::FeedWatch> watch;
  std::optional<fleet::FleetControl> control;
  std::optional<AgentDrain> drain;
  std::unique_ptr<runtime::TokenFile> tokens;  // of callers of /drain, null: no one may call it
  std::optional<admin_port::AdminServer> admin;
  std::unique_ptr<fleet::ConfigWatch> config;
  bool stopped = false;

  // Lines that the log has dropped, counted so far. Scrapes come one by one.
  std::uint64_t dropped_lines = 0;

  Result<Done> build();
  void make_fleet();
  void make_streams();
  Result<Done> read_events();
  Result<Done> listen();
  void add_admin_routes();
  Result<Done> watch_config();
  void refresh_metrics();
};

Result<Done> AgentApp::Parts::build() {
  const contract::AgentSettings& settings = options.settings;
  if (!settings.admin.token_file.empty()) {
    auto opened = runtime::TokenFile::open(settings.admin.token_file, system_clock());
    if (!opened.ok()) return with_context(std::move(opened).error(), "admin.token_file");
    tokens = std::move(*opened);
  }
  replicas = SL_TRY(process::ReplicaStack::create({.nats = settings.nats,
                                                   .replica = settings.replica,
                                                   .role = membership::Role::Agent,
                                                   .model_digest = model->files_digest,
                                                   .scope_model = settings.model.scope(),
                                                   .port = settings.admin.port},
                                                  {identity, metrics, system_clock()}));
  make_fleet();
  make_streams();
  SL_TRY(read_events());
  feeds.emplace(*subscriber, nullptr);
  watch.emplace(*feeds, *model, settings.model.scope());
  control.emplace(
      settings.fleet,
      fleet::FleetControl::Deps{
          .fleet = *fleet, .names = names, .metrics = metrics, .clock = system_clock()});
  drain.emplace(
      AgentDrain::Options{}, *fleet, [this] { streams->drain(); }, system_clock());
  metrics.begin(contract::kProcessMetrics);
  metrics.gauge(contract::kBuildInfo, {SL_VERSION}).set(1);
  metrics.before_scrape([this] { refresh_metrics(); });
  return Done{};
}

void AgentApp::Parts::make_fleet() {
  fleet::FleetListeners listeners;
  listeners.feed_ready = [this](const fleet::Worker& worker, const fleet::Rank& rank) {
    const CacheId cache = rank.feed->cache;
    // The stream exists before the feed is read: the first event needs its sink.
    streams->open({.worker = worker.spec.name, .rank = rank.number}, cache);
    event_metrics.follow(cache, worker.spec.name);
    watch->feed_ready(worker, rank);
  };
  listeners.feed_removed = [this](CacheId cache) {
    // The last status is counted before the feed disappears.
    event_metrics.forget(cache, subscriber->status(cache));
    streams->close(cache);
    watch->feed_removed(cache);
  };
  listeners.last_event = [this](CacheId cache) { return feeds->heard_at(cache); };
  const auto interval = options.settings.fleet.probe_interval;
  fleet.emplace(fleet::Fleet::Options{.probe_interval = interval}, listeners, metrics,
                system_clock());
}

void AgentApp::Parts::make_streams() {
  agent::AgentStreams::Options with;
  with.agent = replicas->name();
  with.draw = runtime::secure_random_u64;
  agent::AgentStreams::Wishes wishes;
  wishes.look = [this](CacheId cache) { subscriber->look(cache); };
  wishes.relearn = [this](CacheId cache, bool replay) { subscriber->relearn(cache, replay); };
  wishes.wanted = [this] { return wanted_streams(*fleet->snapshot()); };
  streams.emplace(std::move(with), std::move(wishes),
                  agent::AgentStreams::Deps{.control = replicas->control(),
                                            .events = replicas->events(),
                                            .sealer = replicas->sealer(),
                                            .subjects = replicas->subjects(),
                                            .metrics = metrics,
                                            .clock = system_clock()});
}

Result<Done> AgentApp::Parts::read_events() {
  subscriber::SubscriberOptions subscription;
  subscription.held_bytes_max = options.settings.events.held_bytes_max;
  subscription.on_status = [this](const events::FeedStatus& status) {
    agent::CacheReport told{.epoch = status.epoch, .facts = status.facts, .lag_by_stamp = {}};
    // Before the first event, the lag means nothing.
    if (status.facts.sequence) told.lag_by_stamp = status.lag;
    streams->tell(status.cache, told);
  };
  subscription.on_change = [this](const events::FeedStatus& status) {
    fleet->take_facts(status.cache, status.facts);
  };
  subscription.on_refused = [this](CacheId cache, const Error& error) {
    fleet->refuse_feed(cache, error.message);
  };
  subscription.names = &names;
  const auto sinks = [this](CacheId cache) { return streams->make_sink(cache); };
  subscriber =
      SL_TRY(subscriber::EventSubscriber::create(subscription, scheme, sinks, system_clock()));
  return Done{};
}

Result<Done> AgentApp::Parts::listen() {
  const contract::AgentSettings& settings = options.settings;
  // The fleet has its workers before /readyz can be asked.
  control->start(read_here(settings.workers));
  admin.emplace(
      admin_port::AdminServer::Options{.host = settings.admin.host, .port = settings.admin.port},
      metrics);
  add_admin_routes();
  SL_TRY(admin->start());
  // The port is known only now: the system may have chosen it.
  const std::string address = authority(settings.admin.host, admin->port());
  replicas->membership().update(
      [&](membership::Announcement& mine) { mine.admin_address = address; });
  return watch_config();
}

void AgentApp::Parts::add_admin_routes() {
  // If NATS is away later, the agent stays ready: routers notice it themselves, and a restart would
  // only lose the blocks.
  admin->add_check("nats", [this] { return streams->check(); });
  admin->add_check("workers", [this] { return check_asked(*fleet->snapshot()); });
  admin->add_route("GET", std::string(contract::kWorkersPath),
                   [this](const admin_port::AdminRequest&) {
                     return admin_port::AdminResponse{
                         .body = agent_workers_json(*fleet->snapshot(), streams->views())};
                   });
  const auto run = [this](const admin_port::AdminRequest& request,
                          const admin_port::AdminServer::Respond& respond) {
    drain->run(request, respond);
  };
  const std::string path(contract::kDrainPath);
  admin->add_late_route("POST", path, run, push::guarded("drain", tokens.get(), metrics, 0));
  // Without a token, for hooks that still send GET.
  if (options.settings.drain_by_get) admin->add_late_route("GET", path, run);
}

Result<Done> AgentApp::Parts::watch_config() {
  if (options.config_file.empty()) return Done{};
  auto changed = [this](Result<std::string> file) {
    auto workers = file.ok() ? options.read_workers(std::move(*file))
                             : Result<std::vector<contract::WorkerSpec>>(file.error());
    if (workers.ok()) workers = read_here(std::move(*workers));
    control->reload_workers(std::move(workers));
  };
  config = SL_TRY(fleet::ConfigWatch::create({.file = options.config_file}, std::move(changed)));
  return Done{};
}

void AgentApp::Parts::refresh_metrics() {
  streams->refresh_metrics();
  event_metrics.tell_held(subscriber->held_bytes(), subscriber->held_hits());
  const auto now = fleet->snapshot();
  for (const auto& worker : now->workers) {
    std::vector<events::FeedStatus> heard;
    for (const fleet::Rank& rank : worker->ranks) {
      const auto status = rank.feed ? subscriber->status(rank.feed->cache) : std::nullopt;
      if (status) heard.push_back(*status);
    }
    event_metrics.tell(worker->spec.name, heard);
  }
  const std::uint64_t dropped = log_dropped_total();
  const auto lines = metrics.counter(contract::kLogDroppedLinesTotal);
  lines.add(static_cast<double>(dropped - std::exchange(dropped_lines, dropped)));
}

AgentApp::AgentApp(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
AgentApp::~AgentApp() { stop(); }

Result<std::unique_ptr<AgentApp>> AgentApp::create(AgentOptions options) {
  const contract::IdentityKey key = SL_TRY(process::load_identity(options.settings.identity));
  auto model = SL_TRY(prepare::load_model(options.settings.model.path));
  log(LogLevel::Info, "model loaded",
      {{"path", options.settings.model.path}, {"files_digest", model->files_digest}});
  auto parts = std::make_unique<Parts>(std::move(options), key, std::move(model));
  auto app = std::make_unique<AgentApp>(std::move(parts));
  SL_TRY(app->parts_->build());
  SL_TRY(app->parts_->listen());
  return app;
}

std::uint16_t AgentApp::admin_port() const { return parts_->admin->port(); }

void AgentApp::reread_config() {
  if (parts_->config) parts_->config->reread();
}

void AgentApp::stop() {
  if (std::exchange(parts_->stopped, true)) return;
  // In this order nothing new begins: no configuration, no calls, no probes. Then the streams say
  // farewell, while NATS is still connected.
  parts_->config.reset();
  if (parts_->drain) parts_->drain->stop();
  if (parts_->admin) parts_->admin->stop();
  if (parts_->control) parts_->control->stop();
  if (parts_->streams) parts_->streams->stop();
  if (parts_->replicas) parts_->replicas->stop();
  parts_->names.stop();
}

}  // namespace sightline::apps
