// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/api_keys.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/runtime/small_file.h"

namespace sightline::fleet {

namespace {

Error unusable(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

Result<std::string> read_api_key(const std::string& path) {
  // Two bytes more than the longest key, for the line end.
  return parse_api_key(SL_TRY(runtime::read_small_file(path, kApiKeyBytesMax + 2)));
}

}  // namespace

Result<std::string> parse_api_key(std::string_view content) {
  // Editors and Windows end the last line in different ways.
  if (content.ends_with('\n')) content.remove_suffix(1);
  if (content.ends_with('\r')) content.remove_suffix(1);
  if (content.empty()) return unusable("is empty");
  if (content.size() > kApiKeyBytesMax) {
    return unusable("is longer than " + std::to_string(kApiKeyBytesMax) + " bytes");
  }
  const bool is_plain =
      std::all_of(content.begin(), content.end(), [](char c) { return c > ' ' && c < 127; });
  if (!is_plain) return unusable("must be one line of visible ASCII characters without spaces");
  return std::string(content);
}

const ApiKeys::KeyState& ApiKeys::of(const contract::WorkerSpec& spec, Instant now) {
  if (spec.api_key_file.empty()) return none_;
  const auto [entry, is_new] = files_.try_emplace(spec.api_key_file);
  File& file = entry->second;
  // A good key is read again only after a refusal.
  const bool is_due = !file.key.problem.empty() && now >= file.read_at + kRereadAfter;
  if (is_new || is_due) read(entry->first, file, now);
  return file.key;
}

void ApiKeys::refused(const contract::WorkerSpec& spec, Instant now) {
  const auto entry = files_.find(spec.api_key_file);
  if (entry == files_.end() || now < entry->second.read_at + kRereadAfter) return;
  read(entry->first, entry->second, now);
}

void ApiKeys::keep(const std::vector<contract::WorkerSpec>& workers) {
  std::set<std::string> named;
  for (const contract::WorkerSpec& spec : workers) named.insert(spec.api_key_file);
  std::erase_if(files_, [&named](const auto& entry) { return !named.contains(entry.first); });
}

void ApiKeys::read(const std::string& path, File& file, Instant now) {
  file.read_at = now;
  auto key = read_api_key(path);
  KeyState next;
  if (key.ok()) {
    next.key = std::move(*key);
  } else {
    next.problem = "api_key_file=" + path + " " + key.error().message;
  }
  // A problem is logged once, not at each reading.
  if (next.problem != file.key.problem && !next.problem.empty()) {
    log(LogLevel::Error, "an engine's API key cannot be used", {{"reason", next.problem}});
  }
  file.key = std::move(next);
}

}  // namespace sightline::fleet
