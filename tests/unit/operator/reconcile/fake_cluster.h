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

// Controllers, kubelets and routers of a cluster, a step at a time: Deployments become pods, pods
// become ready, routers take lists and admit the workers on them. It holds state: a router that is
// restarted has forgotten its list, a pod that ends is there one step longer.
// Thread safety: none but for the RouterAdmin's methods, as that says.
class FakeCluster : public routers::RouterAdmin {
 public:
  explicit FakeCluster(fakes::FakeApiServer& server) : server_(server) {}

  void step();
  // Its list and settings are gone; the pod stays.
  void restart_router(const std::string& pod);
  // Does not answer until it is told again.
  void silence(const std::string& pod, bool is_silent);
  // Nobody looks at Deployments until it is told again.
  void stop_deployments(bool are_stopped) { are_stopped_ = are_stopped; }
  // What a call to one that does not answer takes.
  std::function<void()> on_silence = [] {};
  // A pod of somebody else's, with this label, which is ready at once.
  void add_foreign(const std::string& pod, const std::string& app);
  // Tells routers that its blocks are of that size, whatever they are told.
  void lie(const std::string& worker, std::int64_t block_size);

  [[nodiscard]] std::vector<object::Value> pods(const std::string& component,
                                                const std::string& revision = {}) const;
  // Whether a pod is ready and does not end.
  static bool serves(const object::Value& pod);
  // Workers that a router of their revision has on its list, undrained, and admits.
  [[nodiscard]] std::size_t routable() const;
  [[nodiscard]] bool has_routable(const std::string& revision) const;
  // Frontends that are ready and do not end, of any revision.
  [[nodiscard]] std::size_t serving() const;
  // All requests of a kind so far.
  [[nodiscard]] std::size_t puts(const std::string& path) const;
  // Settings of a router, by name.
  [[nodiscard]] std::map<std::string, std::string> settings(const std::string& pod) const;

  Result<std::map<std::string, std::string>> settings(const routers::Address& process) override;
  Result<judge::RouterAnswers> ask(const routers::Address& router) override;
  Result<Done> put(const routers::Address& router, const std::string& path,
                   const object::Value& body) override;

 private:
  struct Router {
    object::Value list;  // null: none
    object::Value settings;
    bool is_silent = false;
  };

  void run(const object::Value& deployment);
  void start_pod(const object::Value& deployment, const object::Value& set);
  void become(object::Value pod, const object::Value& deployment);
  [[nodiscard]] bool has_foreign(const std::string& revision) const;
  [[nodiscard]] std::optional<object::Value> pod_at(const std::string& ip) const;
  // The pod that answers there; nothing: none does.
  [[nodiscard]] std::optional<object::Value> answering_at(const std::string& ip) const;

  fakes::FakeApiServer& server_;
  std::size_t started_ = 0;
  bool are_stopped_ = false;
  std::set<std::string> routed_;  // revisions with a routable worker, as of the step before
  mutable std::mutex mutex_;      // guards what follows
  std::map<std::string, Router> routers_;  // by pod
  std::map<std::string, std::int64_t> lies_;
  std::map<std::string, std::size_t> puts_;
};

}  // namespace sightline::reconcile
