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

// One thread that keeps a Store like the API server.
// Thread safety: all methods from any thread.
class Informer {
 public:
  struct Options {
    object::Resource resource;
    client::Selection of;
    // The API server may not know the kind, or not let it be listed: then there are no objects, and
    // it is asked again and again.
    bool is_optional = false;
    std::map<std::string, IndexedBy, std::less<>> indexes;
    // What of an object is kept; managedFields never are. May be empty.
    std::function<void(object::Value&)> trim;
    // Told of each change after it is in the store, on this thread, in order; must be short.
    std::function<void(const Change&)> on_change;
    std::uint64_t seed = 0;
    ReflectorOptions rules;
  };

  // Starts at once. The others must outlive it.
  Informer(Options options, client::ApiClient& api, const Clock& clock, runtime::Metrics& metrics);

  [[nodiscard]] const Store& store() const { return store_; }
  // Whether the store has been complete once, or the kind may be missing and is.
  [[nodiscard]] bool has_synced() const;
  // Whether the last list was given.
  [[nodiscard]] bool is_known() const;
  // Waits for that; false: not in this time, or a stop was requested.
  bool wait_until_synced(const std::stop_token& stop, Duration time_max) const;

 private:
  void run(const std::stop_token& stop);
  void list(const WantList& want);
  void on_list_failed(const client::Failure& failure);
  void set_known(bool is_known);
  void watch(const WantWatch& want, const std::stop_token& stop);
  // Reads until the watch is over; how it ended, unless an event said so.
  struct End {
    bool is_said = false;
    std::optional<client::Failure> failure;
  };
  End follow(client::Watch& watch, const std::stop_token& stop);
  void strip(object::Value& object) const;
  void apply(StoreChange change);
  void wait_until(Instant when, const std::stop_token& stop);
  void count_list(std::string_view result);
  void count_watch(std::string_view end);

  const Options options_;
  client::ApiClient& api_;
  const Clock& clock_;
  runtime::Metrics& metrics_;
  Reflector reflector_;  // of the thread
  Store store_;
  mutable Mutex mutex_;
  mutable StopCondVar changed_;
  bool has_synced_ SL_GUARDED_BY(mutex_) = false;
  bool is_known_ SL_GUARDED_BY(mutex_) = false;
  WorkerThread thread_;  // last: it uses all of the above
};

}  // namespace sightline::reflector
