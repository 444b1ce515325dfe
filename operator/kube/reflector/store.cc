// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/reflector/store.h"

#include <utility>

#include "common/base/check.h"

#include "operator/kube/object/metadata.h"

namespace sightline::reflector {
namespace {

bool is_same_state(const object::Value& left, const object::Value& right) {
  const std::string_view version = object::resource_version_of(left);
  return !version.empty() && version == object::resource_version_of(right) &&
         object::uid_of(left) == object::uid_of(right);
}

}  // namespace

Store::Store(std::map<std::string, IndexedBy, std::less<>> indexes) {
  const MutexLock lock(mutex_);
  for (auto& [name, values_of] : indexes) indexes_[name] = Index{std::move(values_of), {}};
}

void Store::set_indexed(const object::Key& key, const object::Value& object, bool is_in) {
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.values_of(object)) {
      Keys& keys = index.keys[value];
      if (is_in) {
        keys.insert(key);
      } else {
        keys.erase(key);
      }
      // A value that no object has must not stay in memory.
      if (keys.empty()) index.keys.erase(value);
    }
  }
}

void Store::put(const object::Key& key, ObjectPtr object, std::vector<Change>& changes) {
  ObjectPtr& place = objects_[key];
  ObjectPtr before = place;
  // A new list brings many unchanged objects. They must cause no work.
  if (before != nullptr && is_same_state(*before, *object)) return;
  if (before != nullptr) set_indexed(key, *before, false);
  set_indexed(key, *object, true);
  place = object;
  changes.push_back({std::move(before), std::move(object), false});
}

void Store::take_out(const object::Key& key, bool is_final_state_unknown,
                     std::vector<Change>& changes) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  set_indexed(key, *found->second, false);
  changes.push_back({std::move(found->second), nullptr, is_final_state_unknown});
  objects_.erase(found);
}

std::vector<Change> Store::apply(StoreChange change) {
  // Made before the lock, so readers wait less.
  std::vector<std::pair<object::Key, ObjectPtr>> objects;
  objects.reserve(change.objects.size());
  for (object::Value& object : change.objects) {
    object::Key key = object::key_of(object);
    objects.emplace_back(std::move(key), std::make_shared<const object::Value>(std::move(object)));
  }
  std::vector<Change> changes;
  const MutexLock lock(mutex_);
  if (change.what == StoreChange::ChangeKind::Replace) {
    // What the list lacks was deleted while no watch could see it.
    Keys gone;
    for (const auto& [key, object] : objects_) gone.insert(gone.end(), key);
    for (const auto& [key, object] : objects) gone.erase(key);
    for (const object::Key& key : gone) take_out(key, true, changes);
  }
  for (auto& [key, object] : objects) {
    if (change.what == StoreChange::ChangeKind::Erase) {
      take_out(key, false, changes);
    } else {
      put(key, std::move(object), changes);
    }
  }
  return changes;
}

ObjectPtr Store::get(const object::Key& key) const {
  const MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<ObjectPtr> Store::list() const {
  const MutexLock lock(mutex_);
  std::vector<ObjectPtr> all;
  all.reserve(objects_.size());
  for (const auto& [key, object] : objects_) all.push_back(object);
  return all;
}

std::vector<ObjectPtr> Store::list(std::string_view name_space) const {
  const MutexLock lock(mutex_);
  std::vector<ObjectPtr> found;
  for (auto at = objects_.lower_bound({std::string(name_space), {}});
       at != objects_.end() && at->first.name_space == name_space; ++at) {
    found.push_back(at->second);
  }
  return found;
}

std::vector<ObjectPtr> Store::find(std::string_view index, std::string_view value) const {
  const MutexLock lock(mutex_);
  const auto of = indexes_.find(index);
  SL_CHECK(of != indexes_.end());
  std::vector<ObjectPtr> found;
  const auto keys = of->second.keys.find(value);
  if (keys == of->second.keys.end()) return found;
  for (const object::Key& key : keys->second) found.push_back(objects_.at(key));
  return found;
}

std::size_t Store::size() const {
  const MutexLock lock(mutex_);
  return objects_.size();
}

IndexedBy by_controller() {
  return [](const object::Value& object) {
    const std::string_view uid = object::controller_uid_of(object);
    return uid.empty() ? std::vector<std::string>() : std::vector<std::string>{std::string(uid)};
  };
}

IndexedBy by_label(std::string name) {
  return [name = std::move(name)](const object::Value& object) {
    const std::string_view value = object::label_of(object, name);
    return value.empty() ? std::vector<std::string>()
                         : std::vector<std::string>{std::string(value)};
  };
}

}  // namespace sightline::reflector
