// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/contract/serve_settings.h"

// The settings that PUT /v1/settings may change while `sightline serve` runs.
namespace sightline::contract {

// The paths of these settings. Code reads them again for each request, or applies them immediately.
// No other setting can change.
std::span<const std::string_view> live_settings();
// Whether the setting with this path is in live_settings().
bool is_live(std::string_view path);
// One clause that says why another setting cannot change.
std::string_view why_not_live(std::string_view path);

// The most bytes of a body. @26t-
inline constexpr std::size_t kSettingsBytesMax = 64 << 10;

// One setting whose value a push changes.
struct SettingChange {
  std::string path;
  std::string before;
  std::string after;
};

// The result of a push.
struct PushedSettings {
  // The settings with the pushed values.
  ServeSettings settings;
  // The paths that the body names.
  std::set<std::string> pushed;
  // The changes from the settings before, in the order of the table.
  std::vector<SettingChange> changes;
};

// Reads the body of PUT /v1/settings: {"settings": {"routing.policy": "random", …}}. Values are
// strings, numbers, true or false, within the ranges of the table. A setting that the body does not
// name gets its value of `start` again. Either all changes apply or no change. Errors blame the
// client:
// - InvalidArgument names each setting that is unknown, fixed or out of range, and why
// - TooLarge: the body is too long
Result<PushedSettings> push_settings(const ServeSettings& start, const ServeSettings& before,
                                     std::string body);

// The origin of the value that a setting had at start, by path: for example "flag --port" or
// "default".
using SettingOrigins = std::map<std::string, std::string>;
SettingOrigins origins_of(const SettingTable& table);

// All settings as GET /v1/settings lists them: [{"name","value","origin","live","allowed"}].
// "value" is a list for a repeatable setting. Of files it contains only the paths.
std::string settings_json(const ServeSettings& now, const SettingOrigins& origins,
                          const std::set<std::string>& pushed);

}  // namespace sightline::contract
