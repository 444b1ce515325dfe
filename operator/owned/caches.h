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

// Copies of MultimodalRouters and of what is rendered for them. Only what carries our label is
// kept, whoever else has how many objects; of Secrets, which users bring too, all that are there,
// by name and version alone. Thread safety: all methods from any thread.
class Caches {
 public:
  struct Options {
    std::vector<std::string> name_spaces;  // that are watched, each once; none: all
    // Told of the MultimodalRouter that a change concerns, on an informer's thread.
    std::function<void(const object::Key&)> on_change;
    std::uint64_t seed = 0;
  };
  // The others must outlive it.
  Caches(Options options, client::ApiClient& api, const Clock& clock, runtime::Metrics& metrics);

  // False: not in this time, or a stop was requested.
  bool wait_until_synced(const std::stop_token& stop, Duration time_max) const;
  [[nodiscard]] bool has_synced() const;

  [[nodiscard]] reflector::ObjectPtr router(const object::Key& key) const;
  [[nodiscard]] reflector::ObjectPtr find(const object::Resource& resource,
                                          const object::Key& key) const;
  // Of a kind that may be missing: whether the API server knows it and lets it be listed.
  [[nodiscard]] bool knows(const object::Resource& resource) const;
  [[nodiscard]] std::size_t count(const object::Resource& resource) const;
  // What this MultimodalRouter controls, of one resource, by key.
  [[nodiscard]] std::vector<reflector::ObjectPtr> owned(const object::Resource& resource,
                                                        std::string_view owner_uid) const;
  // Those, and what carries its label and is controlled by nobody: its owner was taken off it.
  [[nodiscard]] std::vector<reflector::ObjectPtr> children(const object::Resource& resource,
                                                           const object::Key& router,
                                                           std::string_view uid) const;
  // Pods that carry the label of a MultimodalRouter of that name, whoever controls them.
  [[nodiscard]] std::vector<reflector::ObjectPtr> pods_of(const object::Key& router) const;

 private:
  // By the plural of the resource, one for each namespace that is watched.
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
  std::size_t made_ = 0;  // informers
  Informers informers_;
};

}  // namespace sightline::owned
