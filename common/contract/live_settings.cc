// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/contract/live_settings.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/json.h"

namespace sightline::contract {
namespace {

constexpr std::array<std::string_view, 23> kLive = {
    "server.concurrent_requests_max",
    "model.max_model_len",
    "media.images_max",
    "media.image_bytes_max",
    "media.connect_timeout",
    "media.fetch_timeout",
    "media.redirects_max",
    "media.downloads_max",
    "media.held_bytes_max",
    "media.forward",
    "routing.policy",
    "routing.overlap_credit",
    "routing.host_credit",
    "routing.disk_credit",
    "routing.prefill_load_scale",
    "routing.decode_load_scale",
    "routing.recompute_weight",
    "routing.tie_tolerance_blocks",
    "routing.tie_tolerance_ratio",
    "audit.usage",
    "fleet.connect_timeout",
    "fleet.request_timeout",
    "log.level",
};

constexpr std::size_t kDepthMax = 4;
constexpr std::size_t kValuesMax = 1024;
constexpr std::size_t kProblemsMax = 8;  // the most that one answer names

Error refused(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

Result<std::string> text_of(const json::Value& value) {
  if (const auto text = value.string()) return std::string(*text);
  if (value.is(json::Kind::Number) || value.is(json::Kind::Bool)) return std::string(value.raw());
  return refused("must be a string, a number, true or false");
}

Setting* find(SettingTable& table, std::string_view path) {
  for (Setting& row : table.rows()) {
    if (row.text.path == path) return &row;
  }
  return nullptr;
}

std::vector<std::string> paths_of(const SettingTable& table) {
  std::vector<std::string> paths;
  for (const Setting& row : table.rows()) paths.push_back(row.text.path);
  return paths;
}

Result<Done> set(SettingTable& table, const json::Value& given) {
  const std::string path(given.name());
  Setting* row = find(table, path);
  if (row == nullptr) {
    return refused(json::to_quoted(path) + " is not a setting" + suggestion(path, paths_of(table)));
  }
  if (!is_live(path)) {
    return refused(path +
                   " cannot change while the process runs: " + std::string(why_not_live(path)));
  }
  auto text = text_of(given);
  if (!text.ok()) return with_context(text.error(), path);
  const Result<Done> added = row->add({std::move(*text), {}});
  return added.ok() ? added : with_context(added.error(), path);
}

Result<json::Document> read_body(std::string body) {
  if (body.size() > kSettingsBytesMax) {
    return client_error(ErrorCode::TooLarge,
                        "the body has more than " + std::to_string(kSettingsBytesMax) + " bytes");
  }
  auto document = SL_TRY(json::Document::parse(std::move(body), {kDepthMax, kValuesMax}));
  const json::Value root = document.root();
  const auto settings = root.find("settings");
  if (!root.is(json::Kind::Object) || root.size() != 1 || !settings ||
      !settings->is(json::Kind::Object)) {
    return refused("the body must be {\"settings\": {\"NAME\": VALUE, …}} and nothing else");
  }
  return document;
}

std::vector<SettingChange> changes_between(const ServeSettings& before,
                                           const ServeSettings& after) {
  // A table refers to the fields of its settings, so each side needs its own copy.
  ServeSettings old = before;
  ServeSettings fresh = after;
  const SettingTable old_table = serve_table(old);
  const SettingTable new_table = serve_table(fresh);
  std::vector<SettingChange> changes;
  for (std::size_t i = 0; i < new_table.rows().size(); ++i) {
    const Setting& row = new_table.rows()[i];
    if (!is_live(row.text.path)) continue;
    const std::string was = old_table.rows()[i].show().at(0);
    const std::string is = row.show().at(0);
    if (was != is) changes.push_back({row.text.path, was, is});
  }
  return changes;
}

std::string value_json(const Setting& row) {
  const std::vector<std::string> values = row.show();
  const auto one = [&row](const std::string& text) {
    return row.is_textual ? json::to_quoted(text) : text;
  };
  if (!row.is_repeatable()) return one(values.at(0));
  std::string out = "[";
  for (const std::string& value : values) out += (out.size() > 1 ? "," : "") + one(value);
  return out + "]";
}

}  // namespace

std::span<const std::string_view> live_settings() { return kLive; }

bool is_live(std::string_view path) {
  return std::find(kLive.begin(), kLive.end(), path) != kLive.end();
}

std::string_view why_not_live(std::string_view path) {
  if (path == "workers") return "push workers by PUT /v1/workers";
  if (path == "media.allow_private_addresses") {
    return "it would give pushers access to the network of this machine";
  }
  if (path == "server.passed_paths")
    return "it would give pushers access to more paths of the engines";
  if (path.ends_with("_file") || path == "model.path") {
    return "a push must not name files of this machine";
  }
  if (path == "routing.seed") return "the random choice among equal workers began with it";
  if (path == "model.served_names") return "the keys of all known blocks depend on it";
  if (path.starts_with("nats.") || path.starts_with("replica.")) {
    return "other processes identify this one by it";
  }
  return "it is used only when the process starts";
}

Result<PushedSettings> push_settings(const ServeSettings& start, const ServeSettings& before,
                                     std::string body) {
  const auto document = SL_TRY(read_body(std::move(body)));
  // From the start: a setting that the body does not name gets its first value again.
  PushedSettings next{.settings = start, .pushed = {}, .changes = {}};
  SettingTable table = serve_table(next.settings);
  std::string problems;
  std::size_t count = 0;
  const auto settings = document.root().find("settings");
  for (const json::Value& given : *settings) {
    Result<Done> done = next.pushed.insert(std::string(given.name())).second
                            ? set(table, given)
                            : refused(json::to_quoted(given.name()) + " is given twice");
    if (done.ok()) continue;
    if (++count > kProblemsMax) continue;
    problems += (problems.empty() ? "" : "; ") + done.error().message;
  }
  if (count > kProblemsMax) problems += "; and " + std::to_string(count - kProblemsMax) + " more";
  if (count > 0) return refused("nothing was changed: " + problems);
  next.changes = changes_between(before, next.settings);
  return next;
}

SettingOrigins origins_of(const SettingTable& table) {
  SettingOrigins origins;
  for (const Setting& row : table.rows()) origins[row.text.path] = row.origin;
  return origins;
}

std::string settings_json(const ServeSettings& now, const SettingOrigins& origins,
                          const std::set<std::string>& pushed) {
  ServeSettings settings = now;
  const SettingTable table = serve_table(settings);
  std::string out = "[";
  for (const Setting& row : table.rows()) {
    const std::string& path = row.text.path;
    const auto known = origins.find(path);
    const bool is_pushed = pushed.contains(path);
    const std::string origin =
        is_pushed ? "push" : (known == origins.end() ? "default" : known->second);
    out += (out.size() > 1 ? "," : "") + std::string(R"({"name":)") + json::to_quoted(path) +
           R"(,"value":)" + value_json(row) + R"(,"origin":)" + json::to_quoted(origin) +
           R"(,"live":)" + (is_live(path) ? "true" : "false") + R"(,"allowed":)" +
           json::to_quoted(row.range) + "}";
  }
  return out + "]";
}

}  // namespace sightline::contract
