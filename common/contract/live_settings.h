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

// Settings that may be changed while `sightline serve` runs, by PUT /v1/settings.
namespace sightline::contract {

// Their paths. What is on this list is read anew for each request, or taken over at once; nothing
// else is.
std::span<const std::string_view> live_settings();
bool is_live(std::string_view path);
// Why another one may not change, one clause.
std::string_view why_not_live(std::string_view path);

inline constexpr std::size_t kSettingsBytesMax = 64 << 10;  // of a body

struct SettingChange {
  std::string path;
  std::string before;
  std::string after;
};

// What comes of a push.
struct PushedSettings {
  ServeSettings settings;
  std::set<std::string> pushed;        // paths that the body names
  std::vector<SettingChange> changes;  // of the settings before, in the order of the table
};

// Reads the body of PUT /v1/settings, {"settings": {"routing.policy": "random", …}}: values are
// strings, numbers, true or false, within the ranges of the table. What it does not name has its
// value of the `start` again. All or nothing. Errors, blamed on the client: InvalidArgument that
// names every setting that is unknown, may not change or is out of range, and why; TooLarge.
Result<PushedSettings> push_settings(const ServeSettings& start, const ServeSettings& before,
                                     std::string body);

// By path, where the value that a setting had at the start came from: "flag --port", "default".
using SettingOrigins = std::map<std::string, std::string>;
SettingOrigins origins_of(const SettingTable& table);

// All settings, as GET /v1/settings lists them: [{"name","value","origin","live","allowed"}];
// "value" is a list where there may be several. Of files, paths alone are known here.
std::string settings_json(const ServeSettings& now, const SettingOrigins& origins,
                          const std::set<std::string>& pushed);

}  // namespace sightline::contract
