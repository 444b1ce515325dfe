// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <optional>

#include "common/admin_port/admin_server.h"
#include "common/base/published.h"
#include "common/base/result.h"
#include "common/contract/live_settings.h"
#include "common/contract/serve_settings.h"
#include "common/runtime/metrics.h"
#include "common/runtime/token_file.h"

#include "router/front/push/pushed_settings.h"
#include "router/front/push/warmup_check.h"
#include "router/front/push/worker_lists.h"
#include "router/process/replica_stack.h"
#include "router/replicas/lists_exchange/lists_exchange.h"
#include "router/roles/front_role.h"
#include "router/roles/router_role.h"

namespace sightline::apps {

// Pushes to `sightline serve` on its admin port: settings, and for the router role also worker
// lists. It also gives /readyz the state of the lists.
// Thread safety: settings() and lists() from any thread, the other methods from main.
class Pushes {
 public:
  // Errors: of the file with the tokens for pushes. `metrics` outlives this object.
  static Result<std::unique_ptr<Pushes>> create(const contract::ServeSettings& settings,
                                                contract::SettingOrigins origins,
                                                runtime::Metrics& metrics);
  Pushes(const contract::ServeSettings& settings, contract::SettingOrigins origins,
         runtime::Metrics& metrics);  // called by create()

  // The settings as they are at any moment. They can be read before wire().
  [[nodiscard]] const Published<contract::ServeSettings>& settings() const {
    return live_.values();
  }
  // The pushed worker lists.
  [[nodiscard]] push::WorkerLists& lists() { return lists_; }

  // Sets the roles that pushes change. Both outlive all pushes. Null: the process does not have
  // that role. Without the router role there are no lists. Of the following methods only
  // add_admin() may be called then.
  void wire(roles::RouterRole* router, roles::FrontRole* front);
  // Starts the router role with the first list of workers. has_file: there is a configuration file,
  // whose list may be empty. `replicas` exchange lists with this process. Null: there are no
  // replicas. It outlives stop().
  void start(bool has_file, process::ReplicaStack* replicas);
  // Returns Unavailable, with the reason, while there is no list, or while the blocks of its
  // workers are not loaded. From any thread.
  Result<Done> check();
  // Adds the routes and checks.
  void add_admin(admin_port::AdminServer& admin);
  // Called before each scrape.
  void refresh_metrics();
  // Sends nothing to replicas any more.
  void stop();

 private:
  // Applies changed settings to the log and the frontend.
  void take(const contract::ServeSettings& now);
  // Adds the routes and checks of worker lists.
  void add_lists(admin_port::AdminServer& admin);
  // Whether the blocks of the listed workers are loaded.
  Result<std::string> look_at_learnt();
  // Begins to exchange lists with replicas.
  void exchange_with(process::ReplicaStack& replicas);
  // Announces the generation of a list that was just put in force.
  void taken(const lists::InForce& now);

  // The settings at the start.
  const contract::ServeSettings start_;
  runtime::Metrics& metrics_;
  // Null: no one may push.
  std::unique_ptr<runtime::TokenFile> tokens_;
  // Null: no router role.
  roles::RouterRole* router_ = nullptr;
  // Null: no frontend role.
  roles::FrontRole* front_ = nullptr;
  push::LiveSettings live_;
  push::WorkerLists lists_;
  push::WarmupCheck learnt_;
  // Null: there are no replicas.
  process::ReplicaStack* replicas_ = nullptr;
  std::unique_ptr<lists_exchange::ListsExchange> exchange_;
};

}  // namespace sightline::apps
