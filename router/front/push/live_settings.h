// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "common/admin_port/admin_server.h"
#include "common/base/mutex.h"
#include "common/base/published.h"
#include "common/contract/live_settings.h"
#include "common/contract/serve_settings.h"
#include "common/runtime/metrics.h"

namespace sightline::push {

// The settings as they are at this moment: those of the start, some of them changed by push.
// Thread safety: all methods from any thread.
class LiveSettings {
 public:
  struct Around {
    contract::SettingOrigins origins;  // of the values at the start
    // Told of new values, one after the other. Runs under a lock: it may not wait for anything.
    std::function<void(const contract::ServeSettings&)> on_change;
    runtime::Metrics& metrics;  // outlives it
  };
  LiveSettings(contract::ServeSettings start, Around around);

  // For readers: the newest values, at any moment.
  [[nodiscard]] const Published<contract::ServeSettings>& values() const { return values_; }

  // PUT /v1/settings: 200 {"changed": [{"name", "before", "after"}], "pushed": [names]}; 400 or 413
  // where nothing was changed, and why.
  admin_port::AdminResponse put(const admin_port::AdminRequest& request);
  // GET /v1/settings: as contract::settings_json().
  [[nodiscard]] admin_port::AdminResponse get() const;

 private:
  const contract::ServeSettings start_;
  const Around around_;
  Published<contract::ServeSettings> values_;
  mutable Mutex mutex_;  // one push at a time
  std::set<std::string> pushed_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::push
