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

#include "router/front/push/learnt_check.h"
#include "router/front/push/live_settings.h"
#include "router/front/push/worker_lists.h"
#include "router/process/replica_stack.h"
#include "router/replicas/lists_exchange/lists_exchange.h"
#include "router/roles/front_role.h"
#include "router/roles/router_role.h"

namespace sightline::apps {

// What is pushed to `sightline serve` on its admin port: settings and, to the router role, lists of
// workers; and what /readyz says of them.
// Thread safety: settings() and lists() from any thread, the rest from main.
class Pushes {
 public:
  // Errors: of the file with the tokens of those who may push. The metrics outlive it.
  static Result<std::unique_ptr<Pushes>> create(const contract::ServeSettings& settings,
                                                contract::SettingOrigins origins,
                                                runtime::Metrics& metrics);
  Pushes(const contract::ServeSettings& settings, contract::SettingOrigins origins,
         runtime::Metrics& metrics);  // by create()

  // The settings as they are at any moment; readable before wire().
  [[nodiscard]] const Published<contract::ServeSettings>& settings() const {
    return live_.values();
  }
  [[nodiscard]] push::WorkerLists& lists() { return lists_; }

  // Whom it is about; both outlive what is pushed. Null: a role that the process has not. Without
  // the router role there are no lists, and what follows but add_admin() is not to be called.
  void wire(roles::RouterRole* router, roles::FrontRole* front);
  // Starts the router role with the first list of workers. has_file: there is a configuration file,
  // whose list may be empty. replicas: whom lists are told and asked of, null: nobody; outlives
  // stop().
  void start(bool has_file, process::ReplicaStack* replicas);
  // Unavailable, with the reason, while there is no list, or not learnt what its workers hold. From
  // any thread.
  Result<Done> check();
  void add_admin(admin_port::AdminServer& admin);
  // Before each scrape.
  void refresh_metrics();
  // Tells replicas nothing any more.
  void stop();

 private:
  void take(const contract::ServeSettings& now);
  void add_lists(admin_port::AdminServer& admin);
  Result<std::string> look_at_learnt();
  void exchange_with(process::ReplicaStack& replicas);
  void taken(const lists::InForce& now);

  const contract::ServeSettings start_;
  runtime::Metrics& metrics_;
  std::unique_ptr<runtime::TokenFile> tokens_;  // null: nobody may push
  roles::RouterRole* router_ = nullptr;         // perhaps for ever
  roles::FrontRole* front_ = nullptr;           // perhaps for ever
  push::LiveSettings live_;
  push::WorkerLists lists_;
  push::LearntCheck learnt_;
  process::ReplicaStack* replicas_ = nullptr;  // null: there are none
  std::unique_ptr<lists_exchange::ListsExchange> exchange_;
};

}  // namespace sightline::apps
