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

// The present settings: the ones of the start, with the changes of pushes. Thread safety: any
// thread may call any method.
class LiveSettings {
 public:
  struct Deps {
    // The origins of the values at the start.
    contract::SettingOrigins origins;
    // Called with new values, one push after the other. It runs under a lock and must not wait.
    std::function<void(const contract::ServeSettings&)> on_change;
    // Must live longer.
    runtime::Metrics& metrics;
  };
  // `start` are the values of flags, environment and file. A push never changes them.
  LiveSettings(contract::ServeSettings start, Deps deps);

  // The newest values, for readers.
  [[nodiscard]] const Published<contract::ServeSettings>& values() const { return values_; }

  // PUT /v1/settings. The answer is 200 {"changed": [{"name", "before", "after"}], "pushed":
  // [names]}. If nothing was changed because of an error, it is 400 or 413 with the reason.
  admin_port::AdminResponse put(const admin_port::AdminRequest& request);
  // GET /v1/settings. The answer is contract::settings_json().
  [[nodiscard]] admin_port::AdminResponse get() const;

 private:
  const contract::ServeSettings start_;
  const Deps deps_;
  Published<contract::ServeSettings> values_;
  // Held for one push at a time.
  mutable Mutex mutex_;
  std::set<std::string> pushed_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::push
