// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/apps/serve_app.h"

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/contract/metric_table.h"
#include "common/contract/names.h"
#include "common/hosts/lookup.h"
#include "common/http/client.h"
#include "common/http/server.h"
#include "common/runtime/admin_server.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/metrics.h"

#include "router/apps/audit_wiring.h"
#include "router/apps/feed_watch.h"
#include "router/apps/process_identity.h"
#include "router/cache/audit/audit.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/index/indexed_cache.h"
#include "router/cache/subscriber/zmq_subscriber.h"
#include "router/front/admin/explain.h"
#include "router/front/admin/index_view.h"
#include "router/front/admin/workers_view.h"
#include "router/front/proxy/client_api.h"
#include "router/front/proxy/serve.h"
#include "router/front/selection/local_selector.h"
#include "router/prompt/media/fetcher.h"
#include "router/workers/fleet/config_watch.h"
#include "router/workers/fleet/fleet.h"
#include "router/workers/fleet/fleet_control.h"

namespace sightline::apps {
namespace {

using contract::ServeSettings;

prepare::TokenCacheOptions token_cache_options(const contract::ModelSettings& model) {
  prepare::TokenCacheOptions options{.bytes_max = model.token_cache_bytes_max};
  const std::span secret(options.secret);
  // One call gives at most 256 bytes for sure.
  SL_CHECK(::getentropy(secret.data(), secret.size()) == 0);
  return options;
}

IoPoolOptions pool_options(const contract::ServerSettings& server) {
  return {.io_threads = threads_or_cores(server.io_threads),
          .compute_threads = threads_or_cores(server.compute_threads)};
}

media::FetchLimits fetch_limits(const contract::MediaSettings& media, const OpenFilesPlan& plan) {
  return {.image_bytes_max = media.image_bytes_max,
          .connect_timeout = media.connect_timeout,
          .total_timeout = media.fetch_timeout,
          .redirects_max = media.redirects_max,
          .downloads_max = media.downloads_max,
          .held_bytes_max = media.held_bytes_max,
          .descriptor_max = plan.descriptor_max,
          .allow_private_addresses = media.allow_private_addresses};
}

http::ClientOptions client_options(const OpenFilesPlan& plan) {
  return {.idle_per_thread_max = plan.idle_per_thread_max, .descriptor_max = plan.descriptor_max};
}

http::ServerLimits server_limits(const contract::ServerSettings& server,
                                 const OpenFilesPlan& plan) {
  http::ServerLimits limits;
  limits.header_bytes_max = server.header_bytes_max;
  limits.body_bytes_max = server.body_bytes_max;
  limits.total_body_bytes_max = server.total_body_bytes_max;
  limits.connections_max = plan.clients_max;
  limits.descriptor_max = plan.descriptor_max;
  limits.header_timeout = server.header_timeout;
  limits.idle_timeout = server.idle_timeout;
  limits.body_timeout = server.idle_timeout;
  limits.write_timeout = server.idle_timeout;
  return limits;
}

}  // namespace

std::size_t threads_or_cores(std::uint32_t wanted) {
  return wanted > 0 ? wanted : std::max(1U, std::thread::hardware_concurrency());
}

// Declared in the order of making; stop() and the destructor go backwards.
struct ServeApp::Parts {
  Parts(ServeOptions given, contract::IdentityKey key,
        std::shared_ptr<const prepare::LoadedModel> loaded)
      : options(std::move(given)),
        identity(key),
        scheme(identity),
        model(std::move(loaded)),
        token_cache(*model->tokenizer, token_cache_options(options.settings.model), metrics),
        pool(pool_options(options.settings.server)),
        to_workers(pool, client_options(options.open_files), names),
        fetcher(fetch_limits(options.settings.media, options.open_files)) {}

  ServeOptions options;
  contract::IdentityKey identity;
  keys::Scheme scheme;
  std::shared_ptr<const prepare::LoadedModel> model;
  runtime::Metrics metrics;
  hosts::Lookup names{system_clock(), &metrics};
  prepare::TokenCache token_cache;
  index::RemovalJournal removals;
  index::ExactIndex index;
  std::optional<fleet::Fleet> fleet;
  std::unique_ptr<subscriber::EventSubscriber> subscriber;
  std::optional<audit::Audit> audit;
  std::optional<FeedWatch> watch;
  std::optional<fleet::FleetControl> control;
  IoPool pool;
  http::Client to_workers;
  media::Fetcher fetcher;
  std::optional<selection::LocalSelector> selector;
  std::optional<fleet::ServedView> served;
  std::optional<proxy::Services> services;
  std::optional<proxy::Proxy> proxy;
  std::optional<proxy::ClientApi> api;
  std::optional<admin::WorkersView> workers_view;
  std::optional<admin::Explain> explain;
  std::optional<admin::IndexView> index_view;
  std::unique_ptr<http::Server> server;
  std::optional<runtime::AdminServer> admin;
  std::unique_ptr<fleet::ConfigWatch> config;
  std::atomic<bool> stopped = false;  // read by the admin port's threads

  std::uint64_t dropped_lines = 0;  // of the log, counted so far; scrapes come one by one

  Result<Done> build();
  Result<Done> read_events();
  void refresh_metrics();
  Result<Done> listen();
  void add_admin_routes();
  Result<Done> watch_config();
};

Result<Done> ServeApp::Parts::build() {
  const ServeSettings& settings = options.settings;
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
  fleet.emplace(fleet::Fleet::Options{.probe_interval = settings.fleet.probe_interval}, listeners,
                metrics, system_clock());
  SL_TRY(read_events());
  audit.emplace(audit::Audit::Options{}, audit_wiring({*subscriber, *fleet, index, removals}),
                metrics, system_clock());
  watch.emplace(*subscriber, *model, proxy::scope_model(settings));
  control.emplace(
      settings.fleet,
      fleet::FleetControl::Dependencies{
          .fleet = *fleet, .names = names, .metrics = metrics, .clock = system_clock()});
  selector.emplace(selection::LocalSelector::Sources{
      .settings = settings.routing,
      .fleet = *fleet,
      .index = index,
      .removals = removals,
      .compare = [this](const audit::Answered& answered) { audit->compare(answered); },
      .metrics = metrics,
      .clock = system_clock()});
  served.emplace(*fleet);
  services.emplace(proxy::Services{.settings = settings,
                                   .identity = identity,
                                   .scheme = scheme,
                                   .clock = system_clock(),
                                   .model = model,
                                   .token_cache = token_cache,
                                   .pool = pool,
                                   .fetcher = fetcher,
                                   .served = [this] { return served->read(); },
                                   .selector = *selector,
                                   .metrics = metrics});
  proxy.emplace(*services);
  api.emplace(*services, *proxy, to_workers);
  workers_view.emplace(admin::WorkersView::Sources{*fleet, *subscriber, index, *audit}, metrics);
  explain.emplace(*services, proxy->pipeline());
  index_view.emplace(admin::IndexView{.fleet = *fleet, .index = index, .scheme = scheme});
  metrics.gauge(contract::kBuildInfo, {SL_VERSION}).set(1);
  metrics.before_scrape([this] { refresh_metrics(); });
  return Done{};
}

Result<Done> ServeApp::Parts::read_events() {
  subscriber::SubscriberOptions subscription;
  subscription.held_bytes_max = options.settings.events.held_bytes_max;
  subscription.on_change = [this](const events::FeedStatus& status) {
    fleet->take_facts(status.cache, status.facts);
  };
  subscription.on_refused = [this](CacheId cache, const Error& error) {
    fleet->refuse_feed(cache, error.message);
  };
  subscription.names = &names;
  const auto sinks = [this](CacheId cache) {
    return std::make_unique<index::IndexedCache>(cache, index, &removals);
  };
  subscriber =
      SL_TRY(subscriber::EventSubscriber::create(subscription, scheme, sinks, system_clock()));
  return Done{};
}

void ServeApp::Parts::refresh_metrics() {
  workers_view->refresh();
  const std::uint64_t dropped = log_dropped_total();
  const auto lines = metrics.counter(contract::kLogDroppedLinesTotal);
  lines.add(static_cast<double>(dropped - std::exchange(dropped_lines, dropped)));
}

Result<Done> ServeApp::Parts::listen() {
  const ServeSettings& settings = options.settings;
  control->start(settings.workers);
  http::ServerOptions server_options{.host = settings.server.host,
                                     .port = settings.server.port,
                                     .limits = server_limits(settings.server, options.open_files)};
  server_options.refusal = [this](int status, const Error& error) {
    return api->refusal(status, error);
  };
  server_options.accept_failed = [this] {
    metrics.counter(contract::kLimitHitsTotal, {"open-files"}).add();
  };
  auto answer = [this](http::Request& http, http::ResponseWriter& client) {
    return api->handle(http, client);
  };
  server = SL_TRY(http::Server::create(pool, std::move(server_options), std::move(answer)));
  admin.emplace(
      runtime::AdminServer::Options{.host = settings.admin.host, .port = settings.admin.port},
      metrics);
  add_admin_routes();
  SL_TRY(admin->start());
  return watch_config();
}

void ServeApp::Parts::add_admin_routes() {
  admin->add_check("model", [] { return Result<Done>(Done{}); });
  admin->add_check("listening", [this]() -> Result<Done> {
    if (!stopped) return Done{};
    return Error{ErrorCode::Unavailable, Blame::Internal, true, "draining", {}, {}};
  });
  admin->add_check("engines", [this] { return fleet::check_serving(*fleet->snapshot()); });
  admin->add_route("GET", std::string(contract::kWorkersPath),
                   [this](const runtime::AdminRequest&) {
                     return runtime::AdminResponse{.body = workers_view->json()};
                   });
  admin->add_late_route(
      "POST", std::string(contract::kExplainPath),
      [this](const runtime::AdminRequest& request, const runtime::AdminServer::Respond& respond) {
        explain->run(request.body, respond);
      });
  admin->add_route(
      "GET", std::string(contract::kIndexPath),
      [this](const runtime::AdminRequest& request) { return index_view->run(request); });
}

Result<Done> ServeApp::Parts::watch_config() {
  if (options.config_file.empty()) return Done{};
  auto changed = [this](Result<std::string> file) {
    control->reload_workers(file.ok() ? options.read_workers(std::move(*file))
                                      : Result<std::vector<contract::WorkerSpec>>(file.error()));
  };
  config = SL_TRY(fleet::ConfigWatch::create({.file = options.config_file}, std::move(changed)));
  return Done{};
}

ServeApp::ServeApp(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ServeApp::~ServeApp() { stop(); }

Result<std::unique_ptr<ServeApp>> ServeApp::create(ServeOptions options) {
  const contract::IdentityKey key = SL_TRY(load_identity(options.settings.identity));
  auto model = SL_TRY(prepare::load_model(options.settings.model.path));
  log(LogLevel::Info, "model loaded",
      {{"path", options.settings.model.path},
       {"family", model::name_of(model->profile.family)},
       {"vocabulary", model->tokenizer->vocabulary_size()},
       {"files_digest", model->files_digest}});
  auto parts = std::make_unique<Parts>(std::move(options), key, std::move(model));
  SL_TRY(parts->build());
  auto app = std::make_unique<ServeApp>(std::move(parts));
  SL_TRY(app->parts_->listen());
  return app;
}

std::uint16_t ServeApp::port() const { return parts_->server->port(); }
std::uint16_t ServeApp::admin_port() const { return parts_->admin->port(); }

void ServeApp::reread_config() {
  if (parts_->config) parts_->config->reread();
}

void ServeApp::stop() {
  if (parts_->stopped.exchange(true)) return;
  parts_->config.reset();
  if (parts_->server) {
    const auto timeout = parts_->options.settings.server.drain_timeout;
    log(LogLevel::Info, "draining", {{"requests", parts_->server->active_requests()}});
    const bool all_ended = parts_->server->drain(timeout);
    log(all_ended ? LogLevel::Info : LogLevel::Warn,
        all_ended ? "drained" : "drain timeout: the rest was cut off");
  }
  if (parts_->admin) parts_->admin->stop();
  if (parts_->control) parts_->control->stop();
  parts_->names.stop();
  parts_->pool.stop();
}

}  // namespace sightline::apps
