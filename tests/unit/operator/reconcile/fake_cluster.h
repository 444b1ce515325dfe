// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/object/value.h"
#include "operator/routers/router_admin.h"
#include "tests/fakes/fake_api_server.h"

namespace sightline::reconcile {

// Controllers, kubelets and routers of a cluster, one step at a time. Deployments become pods, pods
// become ready, routers accept lists and admit the workers on them. The cluster has state: a
// restarted router has lost its list, and a terminating pod exists one step longer.
// Thread safety: only the RouterAdmin's methods from any thread.
class FakeCluster : public routers::RouterAdmin {
 public:
  explicit FakeCluster(fakes::FakeApiServer& server) : server_(server) {}

  void step();
  // The router loses its list and settings. The pod stays.
  void restart_router(const std::string& pod);
  // The router does not answer until a call with false.
  void silence(const std::string& pod, bool is_silent);
  // No controller reads Deployments until a call with false.
  void stop_deployments(bool are_stopped) { are_stopped_ = are_stopped; }
  // The time that a call to a silent router takes.
  std::function<void()> on_silence = [] {};
  // A pod of another owner with this label, ready immediately.
  void add_foreign(const std::string& pod, const std::string& app);
  // Makes routers report this block size of the worker.
  void lie(const std::string& worker, std::int64_t block_size);

  [[nodiscard]] std::vector<object::Value> pods(const std::string& component,
                                                const std::string& revision = {}) const;
  // Whether a pod is ready and does not end.
  static bool serves(const object::Value& pod);
  // The workers that a router of their revision has on its list, undrained, and admits.
  [[nodiscard]] std::size_t routable() const;
  [[nodiscard]] bool has_routable(const std::string& revision) const;
  // Frontends that are ready and do not end, of any revision.
  [[nodiscard]] std::size_t serving() const;
  // All PUT requests to a path so far.
  [[nodiscard]] std::size_t puts(const std::string& path) const;
  // Settings of a router, by name.
  [[nodiscard]] std::map<std::string, std::string> settings(const std::string& pod) const;

  Result<std::map<std::string, std::string>> settings(const routers::Address& process) override;
  Result<judge::RouterAnswers> ask(const routers::Address& router) override;
  Result<Done> put(const routers::Address& router, const std::string& path,
                   const object::Value& body) override;

 private:
  struct Router {
    object::Value list;  // null: it has no list
    object::Value settings;
    bool is_silent = false;
  };

  void run(const object::Value& deployment);
  void start_pod(const object::Value& deployment, const object::Value& set);
  void become(object::Value pod, const object::Value& deployment);
  [[nodiscard]] bool has_foreign(const std::string& revision) const;
  [[nodiscard]] std::optional<object::Value> pod_at(const std::string& ip) const;
  // The pod that answers at the address, if one does.
  [[nodiscard]] std::optional<object::Value> answering_at(const std::string& ip) const;

  fakes::FakeApiServer& server_;
  std::size_t started_ = 0;
  bool are_stopped_ = false;
  std::set<std::string> routed_;  // revisions with a routable worker, as of the step before
  mutable std::mutex mutex_;      // guards the members below
  std::map<std::string, Router> routers_;  // by pod
  std::map<std::string, std::int64_t> lies_;
  std::map<std::string, std::size_t> puts_;
};

}  // namespace sightline::reconcile
