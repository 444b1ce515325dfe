// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/operator_app.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <stop_token>
#include <utility>

#include "common/admin_port/admin_server.h"
#include "common/base/log.h"
#include "common/contract/metrics_process.h"
#include "common/runtime/entropy.h"
#include "common/runtime/metrics.h"

#include "operator/kube/config/api_credentials.h"
#include "operator/kube/election/elector.h"
#include "operator/kube/https/https_transport.h"
#include "operator/kube/queue/blocking_queue.h"
#include "operator/kube/recorder/event_recorder.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/manager/connect.h"
#include "operator/manager/object_metrics.h"
#include "operator/manager/reconcile_threads.h"
#include "operator/owned/caches.h"
#include "operator/reconcile/reconciler.h"
#include "operator/routers/http_router_admin.h"
#include "operator/routers/patient_router_admin.h"

namespace sightline::manager {
namespace {

// An operator that cannot read the lists of its cluster for this long cannot manage it, so it ends.
constexpr std::chrono::minutes kSyncMax{2};
// A part of the 30 seconds that a pod has to end.
constexpr std::chrono::seconds kFinishMax{10};
constexpr std::string_view kEventsController = "sightline.dev/operator";

election::ElectionOptions election_options(const OperatorSettings& settings,
                                           const config::Connection& connection) {
  election::ElectionOptions options;
  options.lease = lease_of(settings.election, connection);
  options.identity = identity_of_process();
  options.lease_duration = settings.election.lease_duration;
  options.renew_deadline = settings.election.renew_deadline;
  options.retry_period = settings.election.retry_period;
  return options;
}

}  // namespace

// In the order of construction. The destructor goes backwards.
struct OperatorApp::Parts {
  Parts(OperatorOptions given, config::Connection to)
      : options(std::move(given)),
        connection(std::move(to)),
        credentials(connection, system_clock()),
        nobody(config::Connection{}, system_clock()),
        transport(https_options(connection), credentials, system_clock(), stop.get_token()),
        lock_transport(https_options(connection), credentials, system_clock(), {}) {}

  OperatorOptions options;
  config::Connection connection;
  std::stop_source stop;
  runtime::Metrics metrics;
  ObjectMetrics objects{metrics};
  config::Credentials credentials;
  config::Credentials nobody;  // without credentials. For routers, which get their own token
  https::HttpsTransport transport;
  // Without the stop token: release() writes the Lease after the stop.
  https::HttpsTransport lock_transport;
  std::optional<rest::RestClient> api;
  std::optional<rest::RestClient> lock_api;
  std::optional<recorder::EventRecorder> events;
  std::optional<queue::BlockingQueue> queue;
  std::optional<owned::Caches> caches;
  std::optional<routers::HttpRouterAdmin> routers;
  std::optional<routers::PatientRouterAdmin> patient_routers;
  std::optional<reconcile::Reconciler> reconciler;
  std::optional<election::Elector> elector;  // belongs to the starter, until this is joined
  std::atomic<const election::Elector*> candidate{nullptr};  // `elector`, once it exists
  std::optional<admin_port::AdminServer> admin;
  std::optional<WorkerThread> starter;
  std::optional<Workers> workers;  // belongs to the starter, until this is joined
  bool stopped = false;

  Result<Done> build();
  void make_clients();
  void make_reconciler();
  Result<Done> listen();
  bool may_write() const;
  void stand_for_election();
  void start(const std::stop_token& token);
};

bool OperatorApp::Parts::may_write() const {
  if (!options.settings.election.is_on) return true;
  const election::Elector* running = candidate.load();
  return running != nullptr && running->still_leads();
}

void OperatorApp::Parts::make_clients() {
  rest::RestOptions rest;
  rest.user_agent = user_agent(kController);
  rest.host = connection.cluster.server;
  if (options.settings.kube.requests_per_second > 0) {
    rest.requests_per_second = options.settings.kube.requests_per_second;
  }
  rest.may_write = [this] { return may_write(); };
  rest.pause = rest::stoppable_pause(stop.get_token());
  api.emplace(rest, transport, system_clock(), metrics);
  // The Lease does not wait behind other requests, and the election writes it before this process
  // leads.
  rest::RestOptions lock = rest;
  lock.user_agent = user_agent("leader-election");
  lock.requests_per_second.reset();
  lock.may_write = {};
  lock.pause = {};
  // The election repeats its calls itself.
  lock.retries_max = 0;
  // Half of the time, so a second attempt fits into renew_deadline.
  lock.call_timeout =
      std::max<Duration>(options.settings.election.renew_deadline / 2, std::chrono::seconds(1));
  lock_api.emplace(lock, lock_transport, system_clock(), metrics);
}

void OperatorApp::Parts::make_reconciler() {
  const OperatorSettings& settings = options.settings;
  events.emplace(recorder::Reporter{.controller = std::string(kEventsController),
                                    .instance = identity_of_process()},
                 *api, system_clock(), metrics);
  queue.emplace(kController, queue::RateLimits{}, system_clock(), metrics);
  owned::Caches::Options caching;
  caching.name_spaces = settings.kube.name_spaces;
  // A change may let a failed reconciliation succeed, so it is not delayed.
  caching.on_change = [this](const object::Key& key) { queue->add_changed(key); };
  caching.seed = runtime::secure_random_u64();
  caches.emplace(caching, *api, system_clock(), metrics);
  routers::HttpRouterAdmin::Options to_routers;
  to_routers.connect = [this](const std::string& server) -> std::unique_ptr<rest::Transport> {
    https::HttpsOptions plain;
    plain.server = server;
    plain.body_bytes_max = routers::kAnswerBytesMax;
    return std::make_unique<https::HttpsTransport>(plain, nobody, system_clock(), stop.get_token());
  };
  to_routers.may_write = [this] { return may_write(); };
  routers.emplace(std::move(to_routers), system_clock());
  patient_routers.emplace(routers::PatientRouterAdmin::Options{}, *routers, system_clock());
  reconcile::Reconciler::Options reconciling;
  reconciling.images = {.router = settings.images.router,
                        .nats = settings.images.nats,
                        .download = settings.images.download};
  reconciling.version = SL_VERSION;
  reconciling.is_ipv6 = is_ipv6(connection);
  reconciling.poll_interval = settings.reconcile.poll_interval;
  reconciling.on_verdict = [this](const object::Key& key, const crd::Status* status) {
    objects.tell(key, status);
  };
  reconciler.emplace(std::move(reconciling),
                     reconcile::Reconciler::Deps{.api = *api,
                                                 .caches = *caches,
                                                 .routers = *patient_routers,
                                                 .events = *events,
                                                 .clock = system_clock()});
}

// Leads only with complete lists. An operator that cannot read them leaves the Lease to another.
void OperatorApp::Parts::stand_for_election() {
  if (!options.settings.election.is_on) return;
  elector.emplace(
      election::Elector::Options{.election = election_options(options.settings, connection),
                                 .told = {.on_lead = {}, .on_lost = options.on_lost},
                                 .seed = runtime::secure_random_u64()},
      *lock_api, system_clock(), metrics);
  candidate = &*elector;
}

// The workers start when this process has its lists and leads.
void OperatorApp::Parts::start(const std::stop_token& token) {
  if (!caches->wait_until_synced(token, kSyncMax)) {
    if (token.stop_requested()) return;
    log(LogLevel::Error, "cannot read the lists of the API server: see the warnings above",
        {{"server", connection.cluster.server}});
    options.on_lost();
    return;
  }
  stand_for_election();
  while (!token.stop_requested() && !may_write()) {
    if (!rest::stoppable_pause(token)(std::chrono::milliseconds(100))) return;
  }
  Workers::Options working;
  working.count = options.settings.reconcile.workers;
  working.reconcile = [this](const object::Key& key) { return reconciler->reconcile(key); };
  workers.emplace(std::move(working), *queue, system_clock(), metrics);
}

Result<Done> OperatorApp::Parts::build() {
  if (options.settings.election.is_on) {
    SL_TRY(election::check(election_options(options.settings, connection)));
  }
  make_clients();
  make_reconciler();
  SL_TRY(listen());
  starter.emplace("operator-start", [this](const std::stop_token& token) { start(token); });
  return Done{};
}

Result<Done> OperatorApp::Parts::listen() {
  admin_port::AdminServer::Options port;
  port.host = options.settings.admin.host;
  port.port = options.settings.admin.port;
  admin.emplace(port, metrics);
  metrics.gauge(contract::kBuildInfo, {SL_VERSION}).set(1);
  metrics.before_scrape([this] { queue->refresh_metrics(); });
  admin->add_check("caches", [this]() -> Result<Done> {
    if (caches->has_synced()) return Done{};
    return client_error(ErrorCode::Unavailable, "the lists of the API server have not arrived yet");
  });
  return admin->start();
}

Result<std::unique_ptr<OperatorApp>> OperatorApp::create(OperatorOptions options) {
  SL_TRY(check_namespaces(options.settings.kube.name_spaces));
  auto connection = SL_TRY(connection_for(options.settings.kube, options.environment));
  auto parts = std::make_unique<Parts>(std::move(options), std::move(connection));
  SL_TRY(parts->build());
  return std::make_unique<OperatorApp>(std::move(parts));
}

OperatorApp::OperatorApp(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

OperatorApp::~OperatorApp() { stop(); }

std::uint16_t OperatorApp::admin_port() const { return parts_->admin->port(); }

void OperatorApp::stop() {
  if (std::exchange(parts_->stopped, true)) return;
  // First the starter, because it makes `elector` and `workers`.
  parts_->starter->request_stop();
  parts_->starter->join();
  // The work under way has kFinishMax to end. Then its calls are cut off: they may wait for a
  // server that does not answer.
  if (parts_->workers) parts_->workers->finish_within(kFinishMax);
  parts_->stop.request_stop();
  if (parts_->workers) parts_->workers->stop();
  parts_->admin->stop();
  // Last: the next leader must meet no work of this one.
  if (parts_->elector) parts_->elector->release();
}

}  // namespace sightline::manager
