// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/apps/serve_app.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "common/admin_port/admin_server.h"
#include "common/base/authority.h"
#include "common/base/log.h"
#include "common/base/memory_ledger.h"
#include "common/contract/metric_table.h"
#include "common/hosts/lookup.h"
#include "common/runtime/cpu_share.h"
#include "common/runtime/io_pool.h"
#include "common/runtime/memory_keeper.h"
#include "common/runtime/metrics.h"

#include "router/apps/serve_pushes.h"
#include "router/front/proxy/pipeline.h"
#include "router/process/memory_metrics.h"
#include "router/process/process_identity.h"
#include "router/process/replica_stack.h"
#include "router/roles/front_role.h"
#include "router/roles/remote_role.h"
#include "router/roles/router_role.h"
#include "router/workers/fleet/config_watch.h"
#include "router/workers/fleet/served.h"

namespace sightline::apps {
namespace {

using contract::ServeSettings;

// Large steps leave one thread to small ones, so there must be several.
constexpr std::size_t kComputeThreadsMin = 2;

IoPoolOptions pool_options(const contract::ServerSettings& server) {
  const std::size_t compute = server.compute_threads > 0
                                  ? server.compute_threads
                                  : std::max(kComputeThreadsMin, threads_or_cores(0));
  return {.io_threads = threads_or_cores(server.io_threads), .compute_threads = compute};
}

// A process with both roles needs no port to ask itself. Other processes may ask if a port is
// configured.
bool has_selection_port(const ServeOptions& options) {
  if (!contract::is_frontend(options.settings.roles)) return true;
  const auto origin = options.origins.find("selection.port");
  return origin != options.origins.end() && origin->second != contract::Setting().origin;
}

}  // namespace

std::size_t threads_or_cores(std::uint32_t wanted) {
  return wanted > 0 ? wanted : std::min(runtime::usable_cores(), kIoPoolThreadsMax);
}

// Declared in the order of construction. stop() and the destructor go backwards.
struct ServeApp::Parts {
  Parts(ServeOptions given, contract::IdentityKey key,
        std::shared_ptr<const prepare::LoadedModel> loaded)
      : options(std::move(given)),
        identity(key),
        scheme(identity),
        model(std::move(loaded)),
        memory(options.memory.whole, options.memory.bounds),
        pool(pool_options(options.settings.server)) {}

  ServeOptions options;
  contract::IdentityKey identity;
  keys::Scheme scheme;
  std::shared_ptr<const prepare::LoadedModel> model;
  MemoryLedger memory;
  runtime::MemoryKeeper memory_keeper{memory.whole()};
  runtime::Metrics metrics;
  hosts::Lookup names{system_clock(), &metrics};
  std::unique_ptr<process::ReplicaStack> replicas;  // with --nats
  std::unique_ptr<Pushes> pushes;
  IoPool pool;
  std::unique_ptr<roles::RouterRole> router;  // with the router role
  std::optional<fleet::ServedView> served;    // with the router role
  std::unique_ptr<roles::RemoteRole> remote;  // without the router role
  std::optional<roles::FrontRole> front;      // with the frontend role
  std::optional<admin_port::AdminServer> admin;
  std::unique_ptr<fleet::ConfigWatch> config;
  std::atomic<bool> stopped = false;  // read by the admin port's threads

  process::MemoryMetrics memory_metrics{memory, metrics};
  // Lines that the log has dropped, counted so far. Scrapes come one by one.
  std::uint64_t dropped_lines = 0;

  Result<Done> build();
  Result<Done> join_replicas();
  Result<Done> make_router();
  Result<Done> find_routers();
  void make_front();
  [[nodiscard]] Result<Done> check_running() const;
  [[nodiscard]] Result<Done> check_router() const;
  void refresh_metrics();
  Result<Done> listen();
  void add_admin();
  Result<Done> watch_config();
};

Result<Done> ServeApp::Parts::build() {
  // The connections come first: other parts publish and subscribe over them.
  if (!options.settings.nats.urls.empty()) SL_TRY(join_replicas());
  pushes = SL_TRY(Pushes::create(options.settings, options.origins, metrics));
  SL_TRY(contract::is_router(options.settings.roles) ? make_router() : find_routers());
  if (contract::is_frontend(options.settings.roles)) make_front();
  pushes->wire(router ? &*router : nullptr, front ? &*front : nullptr);
  metrics.begin(contract::kMetricTable);
  metrics.gauge(contract::kBuildInfo, {SL_VERSION}).set(1);
  metrics.before_scrape([this] { refresh_metrics(); });
  return Done{};
}

Result<Done> ServeApp::Parts::make_router() {
  router = SL_TRY(roles::RouterRole::create(
      {.settings = pushes->settings(),
       .scheme = scheme,
       .model = *model,
       .names = names,
       .metrics = metrics,
       .memory = memory,
       .replicas = replicas.get(),
       .pool = pool,
       .identity = process::keys_identity(identity, model->files_digest,
                                          proxy::scope_model(options.settings)),
       .open_files = options.open_files,
       .ready = [this] { return check_router(); },
       .has_selection_port = has_selection_port(options)}));
  served.emplace(router->fleet());
  return Done{};
}

Result<Done> ServeApp::Parts::find_routers() {
  const ServeSettings& settings = options.settings;
  const std::string name = process::process_name(settings.replica.name, settings.server.port);
  remote = SL_TRY(roles::RemoteRole::create(
      {.settings = settings.selection,
       .instance = process::instance_name(name),
       .identity =
           process::keys_identity(identity, model->files_digest, proxy::scope_model(settings)),
       .open_files = options.open_files},
      {.pool = pool, .names = names, .metrics = metrics}));
  return Done{};
}

void ServeApp::Parts::make_front() {
  // The router in this process, or else the routers elsewhere, report the served models.
  std::function<std::shared_ptr<const fleet::Served>()> read_served;
  if (router) {
    read_served = [this] { return served->read(); };
  } else {
    read_served = [this] { return remote->served(); };
  }
  front.emplace(roles::FrontRole::Deps{.settings = pushes->settings(),
                                       .open_files = options.open_files,
                                       .identity = identity,
                                       .scheme = scheme,
                                       .model = model,
                                       .names = names,
                                       .metrics = metrics,
                                       .memory = memory,
                                       .pool = pool,
                                       .selector = router ? router->selector() : remote->selector(),
                                       .served = std::move(read_served)});
}

Result<Done> ServeApp::Parts::join_replicas() {
  const ServeSettings& settings = options.settings;
  replicas = SL_TRY(process::ReplicaStack::create(
      {.nats = settings.nats,
       .replica = settings.replica,
       .role = contract::is_router(settings.roles) ? membership::Role::Router
                                                   : membership::Role::Frontend,
       .model_digest = model->files_digest,
       .scope_model = proxy::scope_model(settings),
       .port = settings.server.port},
      {.identity = identity, .metrics = metrics, .clock = system_clock()}));
  log(LogLevel::Info, "started replication over NATS",
      {{"name", replicas->name()},
       {"scope", settings.replica.scope},
       {"revision", settings.replica.revision}});
  return Done{};
}

Result<Done> ServeApp::Parts::check_running() const {
  if (!stopped) return Done{};
  return Error{ErrorCode::Unavailable, Blame::Internal, true, "draining", {}, {}};
}

// For frontends, which can ask another router instead. /readyz has the same checks one by one.
Result<Done> ServeApp::Parts::check_router() const {
  SL_TRY(check_running());
  SL_TRY(pushes->check());
  return fleet::check_serving(*router->fleet().snapshot());
}

void ServeApp::Parts::refresh_metrics() {
  if (router) router->refresh_metrics();
  if (router) pushes->refresh_metrics();
  if (remote) remote->refresh_metrics();
  if (front) {
    metrics.gauge(contract::kRequestsLimit)
        .set(pushes->settings().read()->server.concurrent_requests_max);
  }
  memory_metrics.refresh();
  const std::uint64_t dropped = log_dropped_total();
  const auto lines = metrics.counter(contract::kLogDroppedLinesTotal);
  lines.add(static_cast<double>(dropped - std::exchange(dropped_lines, dropped)));
}

Result<Done> ServeApp::Parts::listen() {
  const ServeSettings& settings = options.settings;
  if (router) {
    // The selection port opens before the workers are followed. Until then it answers that the
    // router is not ready.
    SL_TRY(router->listen());
    pushes->start(!options.config_file.empty(), replicas.get());
  }
  if (remote) remote->start();
  if (front) SL_TRY(front->listen());
  admin.emplace(admin_port::AdminServer::Options{.host = settings.admin.host,
                                                 .port = settings.admin.port,
                                                 .connections_max = options.open_files.admin_max,
                                                 .memory = &memory.share(MemoryShare::Requests),
                                                 .connection_memory =
                                                     &memory.share(MemoryShare::Connections)},
                metrics);
  add_admin();
  // The admin port comes last: /readyz must not say that a port listens before it does.
  SL_TRY(admin->start());
  if (replicas) {
    // The port is known only now: the system may have chosen it.
    const std::string address = authority(settings.admin.host, admin->port());
    replicas->membership().update(
        [&address](membership::Announcement& mine) { mine.admin_address = address; });
  }
  return watch_config();
}

void ServeApp::Parts::add_admin() {
  admin->add_check("model", [] { return Result<Done>(Done{}); });
  admin->add_check("listening", [this] { return check_running(); });
  if (router) router->add_admin(*admin);
  if (remote) remote->add_admin(*admin);
  if (front) front->add_admin(*admin);
  pushes->add_admin(*admin);
}

Result<Done> ServeApp::Parts::watch_config() {
  // A frontend alone has no worker list to read again.
  if (options.config_file.empty() || !router) return Done{};
  auto changed = [this](Result<std::string> file) {
    pushes->lists().reread(file.ok() ? options.read_workers(std::move(*file))
                                     : Result<std::vector<contract::WorkerSpec>>(file.error()));
  };
  config = SL_TRY(fleet::ConfigWatch::create({.file = options.config_file}, std::move(changed)));
  return Done{};
}

ServeApp::ServeApp(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ServeApp::~ServeApp() { stop(); }

Result<std::unique_ptr<ServeApp>> ServeApp::create(ServeOptions options) {
  const contract::IdentityKey key = SL_TRY(process::load_identity(options.settings.identity));
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

std::optional<std::uint16_t> ServeApp::port() const {
  if (!parts_->front) return std::nullopt;
  return parts_->front->port();
}
std::uint16_t ServeApp::admin_port() const { return parts_->admin->port(); }
std::optional<std::uint16_t> ServeApp::selection_port() const {
  if (!parts_->router) return std::nullopt;
  return parts_->router->selection_port();
}

void ServeApp::reread_config() {
  if (parts_->config) parts_->config->reread();
}

void ServeApp::stop() {
  if (parts_->stopped.exchange(true)) return;
  // Peers receive the announcement first and stop sending requests here. Then the ports close, then
  // the workers, and the threads last.
  parts_->config.reset();
  if (parts_->replicas) parts_->replicas->stop();
  if (parts_->front) parts_->front->drain();
  if (parts_->remote) parts_->remote->stop();
  if (parts_->router) parts_->router->drain();
  if (parts_->admin) parts_->admin->stop();
  if (parts_->pushes) parts_->pushes->stop();
  if (parts_->router) parts_->router->stop();
  parts_->names.stop();
  parts_->pool.stop();
}

}  // namespace sightline::apps
