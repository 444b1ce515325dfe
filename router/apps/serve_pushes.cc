// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/apps/serve_pushes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/contract/metrics_process.h"
#include "common/contract/names.h"
#include "common/runtime/entropy.h"

#include "router/front/push/put_guard.h"
#include "router/front/push/worker_routes.h"
#include "router/workers/lists/pushed.h"

namespace sightline::apps {

using admin_port::AdminRequest;
using contract::ServeSettings;

Result<std::unique_ptr<Pushes>> Pushes::create(const ServeSettings& settings,
                                               contract::SettingOrigins origins,
                                               runtime::Metrics& metrics) {
  auto pushes = std::make_unique<Pushes>(settings, std::move(origins), metrics);
  const std::string& file = settings.admin.token_file;
  if (file.empty()) return pushes;
  auto tokens = runtime::TokenFile::open(file, system_clock());
  if (!tokens.ok()) return with_context(tokens.error(), "admin.token_file");
  pushes->tokens_ = std::move(*tokens);
  return pushes;
}

Pushes::Pushes(const ServeSettings& settings, contract::SettingOrigins origins,
               runtime::Metrics& metrics)
    : start_(settings),
      metrics_(metrics),
      live_(settings, {.origins = std::move(origins),
                       .on_change = [this](const ServeSettings& now) { take(now); },
                       .metrics = metrics}),
      lists_({.revision = settings.replica.revision,
              .hand_over =
                  [this](std::vector<contract::WorkerSpec> workers) {
                    router_->set_workers(std::move(workers));
                  },
              .on_taken = [this](const lists::InForce& now) { taken(now); },
              .metrics = metrics}),
      learnt_(settings.fleet.ready_timeout) {}

void Pushes::take(const ServeSettings& now) {
  const auto leveled = set_log_level(now.log.level);
  if (!leveled.ok()) log(LogLevel::Error, leveled.error().message);
  if (front_ != nullptr) front_->set_limits(now.media);
}

void Pushes::wire(roles::RouterRole* router, roles::FrontRole* front) {
  router_ = router;
  front_ = front;
  if (router == nullptr) return;
  router->add_to_replicas("list",
                          [this] { return "{" + push::members_of(*lists_.in_force()) + "}"; });
}

void Pushes::start(bool has_file, process::ReplicaStack* replicas) {
  replicas_ = replicas;
  std::optional<std::vector<contract::WorkerSpec>> boot;
  // An empty list in a file is a list. Without a file and without workers, the router waits for a
  // push.
  if (has_file || !start_.workers.empty()) boot = start_.workers;
  // A list of peers comes before this one, so they are asked first.
  lists_.boot(std::move(boot), replicas != nullptr);
  router_->start(lists_.in_force()->workers);
  if (replicas != nullptr) exchange_with(*replicas);
}

void Pushes::exchange_with(process::ReplicaStack& replicas) {
  const auto own = [this]() -> lists_exchange::Own {
    const auto now = lists_.in_force();
    if (!now->pushed) return {};
    return {now->generation(), now->pushed->digest,
            // The pointer shares the ownership of the list, so the body is not copied.
            std::shared_ptr<const std::string>(now->pushed, &now->pushed->body)};
  };
  const auto announced = [&replicas] { return replicas.membership().generations(); };
  const auto offer = [this](std::string body) {
    const auto offered = lists_.offer(std::move(body), lists::ListSource::Peers);
    if (offered.ok()) return;
    log(LogLevel::Error, "ignored a peer's worker list: it cannot be read",
        {{"reason", offered.error().message}});
  };
  exchange_ = std::make_unique<lists_exchange::ListsExchange>(
      lists_exchange::ListsExchange::Deps{.connection = replicas.control(),
                                          .sealer = replicas.sealer(),
                                          .subjects = replicas.subjects(),
                                          .instance = replicas.instance(),
                                          .seed = runtime::secure_random_u64(),
                                          .metrics = metrics_,
                                          .clock = system_clock()},
      lists_exchange::ListsExchange::Hooks{
          .own = own, .announced = announced, .offer = offer, .does_without = [this] {
            lists_.boot_without_peers();
          }});
}

// Runs on the thread of the push, or on that of the exchange.
void Pushes::taken(const lists::InForce& now) {
  if (replicas_ == nullptr) return;
  replicas_->membership().update([&now](membership::Announcement& mine) {
    // Two pushes may arrive here in the other order. The announced generation never falls.
    mine.generation = std::max(mine.generation, now.generation());
  });
}

void Pushes::stop() { exchange_.reset(); }

Result<std::string> Pushes::look_at_learnt() {
  // The list is read first. In between, the fleet may have applied a later list, but never an
  // earlier one.
  const auto list = lists_.in_force();
  return learnt_.look(*router_->fleet().snapshot(), *list, system_clock().now());
}

Result<Done> Pushes::check() {
  SL_TRY(lists_.check());
  SL_TRY(look_at_learnt());
  return Done{};
}

void Pushes::add_lists(admin_port::AdminServer& admin) {
  admin.add_noted_check("workers", [this] { return lists_.check(); });
  admin.add_noted_check("learnt", [this] { return look_at_learnt(); });
  const std::string workers(contract::kWorkersPath);
  admin.add_route(
      "PUT", workers,
      [this](const AdminRequest& put) {
        auto answer = push::put_workers(lists_, put);
        // The exchange reads the new list immediately.
        if (exchange_) exchange_->own_changed();
        return answer;
      },
      push::guarded("workers", tokens_.get(), metrics_, lists::kPushBytesMax));
  admin.add_route("GET", std::string(contract::kWorkerListPath),
                  [this](const AdminRequest&) { return push::get_worker_list(lists_); });
}

void Pushes::add_admin(admin_port::AdminServer& admin) {
  if (router_ != nullptr) add_lists(admin);
  const std::string settings(contract::kSettingsPath);
  admin.add_route(
      "PUT", settings, [this](const AdminRequest& put) { return live_.put(put); },
      push::guarded("settings", tokens_.get(), metrics_, contract::kSettingsBytesMax));
  admin.add_route("GET", settings, [this](const AdminRequest&) { return live_.get(); });
}

void Pushes::refresh_metrics() {
  metrics_.gauge(contract::kLearnt).set(look_at_learnt().ok() ? 1 : 0);
}

}  // namespace sightline::apps
