// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/runtime/metrics.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/reflector/informer.h"

namespace sightline::owned {

// Copies of MultimodalRouters and of the objects that are rendered for them. Keeps only objects
// with our label, so foreign objects cost no memory. Of Secrets, which users create too, it keeps
// all, but only name and version.
// Thread safety: all methods from any thread.
class Caches {
 public:
  struct Options {
    // The namespaces to watch, each once. Empty: all.
    std::vector<std::string> name_spaces;
    // Called with the MultimodalRouter that a change concerns, on an informer's thread.
    std::function<void(const object::Key&)> on_change;
    std::uint64_t seed = 0;
  };
  // The other arguments must outlive it.
  Caches(Options options, client::ApiClient& api, const Clock& clock, runtime::Metrics& metrics);

  // Waits until all lists are complete. Returns false after time_max, or if a stop is requested.
  bool wait_until_synced(const std::stop_token& stop, Duration time_max) const;
  // Whether all lists are complete.
  [[nodiscard]] bool has_synced() const;

  // The MultimodalRouter with this key, or null.
  [[nodiscard]] reflector::ObjectPtr router(const object::Key& key) const;
  // The object of this resource and key, or null.
  [[nodiscard]] reflector::ObjectPtr find(const object::Resource& resource,
                                          const object::Key& key) const;
  // For a kind that may be missing: whether the API server knows it and allows to list it.
  [[nodiscard]] bool knows(const object::Resource& resource) const;
  // The number of objects of this resource.
  [[nodiscard]] std::size_t count(const object::Resource& resource) const;
  // The objects of one resource that this MultimodalRouter controls, by key.
  [[nodiscard]] std::vector<reflector::ObjectPtr> owned(const object::Resource& resource,
                                                        std::string_view owner_uid) const;
  // The same, and the objects with its label that have no controller, because their owner was
  // removed.
  [[nodiscard]] std::vector<reflector::ObjectPtr> children(const object::Resource& resource,
                                                           const object::Key& router,
                                                           std::string_view uid) const;
  // The pods with the label of a MultimodalRouter of that name, with any controller.
  [[nodiscard]] std::vector<reflector::ObjectPtr> pods_of(const object::Key& router) const;

 private:
  // By the plural of the resource. One informer for each watched namespace.
  using Informers =
      std::map<std::string, std::vector<std::unique_ptr<reflector::Informer>>, std::less<>>;

  void watch(const object::Resource& resource, const std::string& labels);
  std::unique_ptr<reflector::Informer> informer_of(const object::Resource& resource,
                                                   const std::string& labels,
                                                   const std::string& name_space);
  [[nodiscard]] const Informers::mapped_type& informers_of(const object::Resource& resource) const;
  [[nodiscard]] std::vector<reflector::ObjectPtr> indexed(const object::Resource& resource,
                                                          std::string_view index,
                                                          std::string_view value) const;

  const Options options_;
  client::ApiClient& api_;
  const Clock& clock_;
  runtime::Metrics& metrics_;
  // The number of informers, for their seeds.
  std::size_t made_ = 0;
  Informers informers_;
};

}  // namespace sightline::owned
