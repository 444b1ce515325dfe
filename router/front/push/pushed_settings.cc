// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/pushed_settings.h"

#include <utility>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/contract/metrics_process.h"

namespace sightline::push {

using admin_port::AdminResponse;
using contract::ServeSettings;
using contract::SettingChange;

namespace {

std::string shown(const std::vector<SettingChange>& changes) {
  std::string out = "[";
  for (const SettingChange& change : changes) {
    out += (out.size() > 1 ? "," : "") + std::string(R"({"name":)") + json::to_quoted(change.path) +
           R"(,"before":)" + json::to_quoted(change.before) + R"(,"after":)" +
           json::to_quoted(change.after) + "}";
  }
  return out + "]";
}

std::string shown(const std::set<std::string>& names) {
  std::string out = "[";
  for (const std::string& name : names) {
    out += (out.size() > 1 ? "," : "") + json::to_quoted(name);
  }
  return out + "]";
}

}  // namespace

LiveSettings::LiveSettings(ServeSettings start, Deps deps)
    : start_(std::move(start)),
      deps_(std::move(deps)),
      values_(std::make_shared<const ServeSettings>(start_)) {
  deps_.metrics.gauge(contract::kSettingsPushed).set(0);
}

AdminResponse LiveSettings::put(const admin_port::AdminRequest& request) {
  contract::PushedSettings next;
  {
    const MutexLock lock(mutex_);
    auto pushed = contract::push_settings(start_, *values_.read(), request.body);
    if (!pushed.ok()) {
      deps_.metrics.counter(contract::kPushesTotal, {"settings", "malformed"}).add();
      const bool is_large = pushed.error().code == ErrorCode::TooLarge;
      return admin_port::admin_error(is_large ? 413 : 400, pushed.error().message);
    }
    next = std::move(*pushed);
    // A push replaces the pushes before it.
    pushed_ = next.pushed;
    auto values = std::make_shared<const ServeSettings>(next.settings);
    values_.publish(values);
    // Called under the lock, because two pushes must reach the parts in their order.
    if (deps_.on_change) deps_.on_change(*values);
  }
  deps_.metrics.gauge(contract::kSettingsPushed).set(static_cast<double>(next.pushed.size()));
  const std::string_view result = next.changes.empty() ? "same" : "taken";
  deps_.metrics.counter(contract::kPushesTotal, {"settings", result}).add();
  for (const SettingChange& change : next.changes) {
    log(LogLevel::Info, "a setting was changed",
        {{"name", change.path}, {"before", change.before}, {"after", change.after}});
  }
  return {200, R"({"changed":)" + shown(next.changes) + R"(,"pushed":)" + shown(next.pushed) + "}"};
}

AdminResponse LiveSettings::get() const {
  const MutexLock lock(mutex_);
  return {200, contract::settings_json(*values_.read(), deps_.origins, pushed_)};
}

}  // namespace sightline::push
