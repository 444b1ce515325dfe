// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"

#include "operator/kube/object/resource.h"
#include "operator/kube/object/value.h"
#include "operator/kube/reflector/reflector.h"

namespace sightline::reflector {

using ObjectPtr = std::shared_ptr<const object::Value>;

// One difference between two states of a copy. Without `after` the object is gone. With both,
// `after` may be another object of the same name (compare UIDs).
struct Change {
  ObjectPtr before;
  ObjectPtr after;
  // It vanished unseen. `before` is its last known state.
  bool is_final_state_unknown = false;
};

// The values under which an index finds an object.
using IndexedBy = std::function<std::vector<std::string>(const object::Value&)>;

// The copy of a resource, which may be older than the API server.
// Thread safety: all methods from any thread. Objects do not change while a reader has them.
// IndexedBy runs with the lock held, so it must not wait.
class Store {
 public:
  // The indexes, by the name that find() takes.
  explicit Store(std::map<std::string, IndexedBy, std::less<>> indexes = {});

  // Applies a change. Returns the differences. An object with the same UID and version is no
  // difference.
  std::vector<Change> apply(StoreChange change);

  // Null if there is no object.
  [[nodiscard]] ObjectPtr get(const object::Key& key) const;
  // All objects, or those of one namespace, by key.
  [[nodiscard]] std::vector<ObjectPtr> list() const;
  [[nodiscard]] std::vector<ObjectPtr> list(std::string_view name_space) const;
  // By key. An unknown index is a bug and ends the process.
  [[nodiscard]] std::vector<ObjectPtr> find(std::string_view index, std::string_view value) const;
  // The number of objects.
  [[nodiscard]] std::size_t size() const;

 private:
  using Keys = std::set<object::Key>;
  struct Index {
    IndexedBy values_of;
    std::map<std::string, Keys, std::less<>> keys;
  };

  // Stores an object, updates the indexes and adds the difference to `changes`.
  void put(const object::Key& key, ObjectPtr object, std::vector<Change>& changes)
      SL_REQUIRES(mutex_);
  // Removes an object, updates the indexes and adds the difference to `changes`.
  void take_out(const object::Key& key, bool is_final_state_unknown, std::vector<Change>& changes)
      SL_REQUIRES(mutex_);
  // Adds the object to the indexes, or removes it from them.
  void set_indexed(const object::Key& key, const object::Value& object, bool is_in)
      SL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<object::Key, ObjectPtr> objects_ SL_GUARDED_BY(mutex_);
  std::map<std::string, Index, std::less<>> indexes_ SL_GUARDED_BY(mutex_);
};

// Indexes that most controllers need: the UID of the controlling owner, and the value of a label.
[[nodiscard]] IndexedBy by_controller();
[[nodiscard]] IndexedBy by_label(std::string name);

}  // namespace sightline::reflector
