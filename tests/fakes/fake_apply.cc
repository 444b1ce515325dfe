// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/fakes/fake_apply.h"

#include <algorithm>

namespace sightline::fakes {
namespace {

using object::Value;

// By which member the elements of a list are told apart; empty: it is one value.
std::string_view list_key(const Value& list) {
  for (const std::string_view key : {"name", "type"}) {
    const bool has_all = std::all_of(list.items().begin(), list.items().end(),
                                     [&](const Value& item) { return item[key].is_string(); });
    if (list.size() > 0 && has_all) return key;
  }
  return {};
}

std::string element_path(const std::string& path, std::string_view key, const Value& item) {
  return path + "[" + std::string(key) + "=" + std::string(item[key].text()) + "]";
}

void collect(const Value& value, const std::string& path, Fields& out) {
  const std::string_view key = list_key(value);
  if (value.is_object() && value.size() > 0) {
    for (const auto& [name, member] : value.members()) collect(member, path + "." + name, out);
  } else if (!key.empty()) {
    for (const Value& item : value.items()) collect(item, element_path(path, key, item), out);
  } else {
    out[path] = value;
  }
}

Value merged(const Value& live, const Value& wanted) {
  if (live.is_object() && wanted.is_object()) {
    Value out = live;
    for (const auto& [name, member] : wanted.members()) {
      out.member(name) = merged(live[name], member);
    }
    return out;
  }
  const std::string_view key = list_key(wanted);
  if (key.empty() || key != list_key(live)) return wanted;
  Value::Items items = live.items();
  for (const Value& item : wanted.items()) {
    const auto same = std::find_if(items.begin(), items.end(), [&](const Value& other) {
      return other[key].text() == item[key].text();
    });
    if (same == items.end()) {
      items.push_back(item);
    } else {
      *same = merged(*same, item);
    }
  }
  return items;
}

// The value without the leaves at these paths, and without what they leave empty.
Value without(const Value& value, const std::string& path, const std::set<std::string>& gone) {
  const std::string_view key = list_key(value);
  if (value.is_object()) {
    Value out = Value::object();
    for (const auto& [name, member] : value.members()) {
      const std::string at = path + "." + name;
      if (gone.contains(at)) continue;
      Value kept = without(member, at, gone);
      const bool is_emptied = member.size() > 0 && kept.size() == 0;
      if (!is_emptied) out.member(name) = std::move(kept);
    }
    return out;
  }
  if (key.empty()) return value;
  Value::Items items;
  for (const Value& item : value.items()) {
    const std::string at = element_path(path, key, item);
    Value kept = without(item, at, gone);
    if (kept.size() > 0) items.push_back(std::move(kept));
  }
  return items;
}

bool is_owned_by_others(const Managers& managers, const std::string& manager,
                        const std::string& path) {
  return std::any_of(managers.begin(), managers.end(), [&](const auto& entry) {
    return entry.first != manager && entry.second.contains(path);
  });
}

// Names the object, or is the server's: nobody's.
bool is_identity(const std::string& path) {
  static const std::set<std::string> kIdentity = {".apiVersion",
                                                  ".kind",
                                                  ".metadata.name",
                                                  ".metadata.namespace",
                                                  ".metadata.uid",
                                                  ".metadata.resourceVersion",
                                                  ".metadata.generation",
                                                  ".metadata.creationTimestamp",
                                                  ".metadata.deletionTimestamp"};
  return kIdentity.contains(path) || path.starts_with(".metadata.managedFields");
}

}  // namespace

Fields fields_of(const Value& object) {
  Fields all;
  collect(object, "", all);
  std::erase_if(all, [](const auto& field) { return is_identity(field.first); });
  return all;
}

Applied apply_fields(const Value& live, const Value& wanted, const Applier& applier,
                     Managers& managers) {
  const std::string& manager = applier.manager;
  const Fields before = fields_of(live);
  const Fields asked = fields_of(wanted);
  Applied result;
  std::set<std::string> owned;
  for (const auto& [path, value] : asked) {
    owned.insert(path);
    const auto live_value = before.find(path);
    const bool is_other = live_value != before.end() && !(live_value->second == value);
    if (is_other && is_owned_by_others(managers, manager, path)) result.conflicts.push_back(path);
  }
  result.object = live;
  if (!result.conflicts.empty() && !applier.is_forced) return result;
  for (const std::string& path : result.conflicts) {
    for (auto& [other, paths] : managers) {
      if (other != manager) paths.erase(path);
    }
  }
  std::set<std::string> gone;
  for (const std::string& path : managers[manager]) {
    if (!owned.contains(path) && !is_owned_by_others(managers, manager, path)) gone.insert(path);
  }
  result.object = merged(without(live, "", gone), wanted);
  managers[manager] = std::move(owned);
  return result;
}

void take_changed_fields(const Value& before, const Value& after, Managers& managers) {
  const Fields old = fields_of(before);
  const Fields now = fields_of(after);
  for (auto& [manager, paths] : managers) {
    std::erase_if(paths, [&](const std::string& path) {
      const auto was = old.find(path);
      const auto is = now.find(path);
      if (is == now.end()) return true;
      return was == old.end() || !(was->second == is->second);
    });
  }
}

}  // namespace sightline::fakes
