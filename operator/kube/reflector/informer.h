// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"
#include "common/runtime/worker_thread.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/reflector/reflector.h"
#include "operator/kube/reflector/store.h"

namespace sightline::reflector {

// One thread that keeps a Store equal to the API server.
// Thread safety: all methods from any thread.
class Informer {
 public:
  struct Options {
    object::Resource resource;
    client::Selection of;
    // The API server may not know the kind, or may not allow to list it. Then the store is empty,
    // and the informer keeps trying.
    bool is_optional = false;
    std::map<std::string, IndexedBy, std::less<>> indexes;
    // Removes the parts of an object that are not needed. managedFields are removed in any case.
    // May be empty.
    std::function<void(object::Value&)> trim;
    // Called for each change after the store has it, on this thread, in order. It must not wait.
    std::function<void(const Change&)> on_change;
    std::uint64_t seed = 0;
    ReflectorOptions rules;
  };

  // Starts the thread. The other arguments must outlive it.
  Informer(Options options, client::ApiClient& api, const Clock& clock, runtime::Metrics& metrics);

  [[nodiscard]] const Store& store() const { return store_; }
  // Whether the store was complete once, or the kind is optional and missing.
  [[nodiscard]] bool has_synced() const;
  // Whether the last list succeeded.
  [[nodiscard]] bool is_known() const;
  // Waits for has_synced(). Returns false after time_max, or if a stop is requested.
  bool wait_until_synced(const std::stop_token& stop, Duration time_max) const;

 private:
  // The loop of the thread: does what the reflector wants.
  void run(const std::stop_token& stop);
  // Lists one page.
  void list(const WantList& want);
  // Empties the store if an optional kind is missing. Logs other failures.
  void on_list_failed(const client::Failure& failure);
  // Stores the result of a list, and wakes wait_until_synced().
  void set_known(bool is_known);
  // Watches until the watch ends.
  void watch(const WantWatch& want, const std::stop_token& stop);
  // Reads until the watch ends. The result says how it ended, unless an event has said it.
  struct End {
    bool is_said = false;
    std::optional<client::Failure> failure;
  };
  End follow(client::Watch& watch, const std::stop_token& stop);
  // Removes the parts of an object that readers do not need.
  void strip(object::Value& object) const;
  // Applies a change to the store, then calls on_change.
  void apply(StoreChange change);
  // Waits until this time, a stop, or kLookMax.
  void wait_until(Instant when, const std::stop_token& stop);
  // Count lists and watches by their result.
  void count_list(std::string_view result);
  void count_watch(std::string_view end);

  const Options options_;
  client::ApiClient& api_;
  const Clock& clock_;
  runtime::Metrics& metrics_;
  // Only the thread uses it.
  Reflector reflector_;
  Store store_;
  mutable Mutex mutex_;
  mutable StopCondVar changed_;
  bool has_synced_ SL_GUARDED_BY(mutex_) = false;
  bool is_known_ SL_GUARDED_BY(mutex_) = false;
  // Last, because it uses all members above.
  WorkerThread thread_;
};

}  // namespace sightline::reflector
