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

// One difference between a copy before and after. Without `after` the object is gone; with both,
// it may be another one of the same name (compare UIDs).
struct Change {
  ObjectPtr before;
  ObjectPtr after;
  bool is_final_state_unknown = false;  // it vanished unseen: `before` is what was known last
};

// The values under which an object is found in an index.
using IndexedBy = std::function<std::vector<std::string>(const object::Value&)>;

// The copy of a resource, which may be behind the API server.
// Thread safety: all methods from any thread; objects do not change under their readers. What
// IndexedBy does runs under the lock: it must be short.
class Store {
 public:
  explicit Store(std::map<std::string, IndexedBy, std::less<>> indexes = {});

  // What is different afterwards; objects of the same UID and version are not.
  std::vector<Change> apply(StoreChange change);

  [[nodiscard]] ObjectPtr get(const object::Key& key) const;  // nullptr: there is none
  [[nodiscard]] std::vector<ObjectPtr> list() const;          // by key
  [[nodiscard]] std::vector<ObjectPtr> list(std::string_view name_space) const;
  // By key. An index that there is not is a bug and stops the process.
  [[nodiscard]] std::vector<ObjectPtr> find(std::string_view index, std::string_view value) const;
  [[nodiscard]] std::size_t size() const;

 private:
  using Keys = std::set<object::Key>;
  struct Index {
    IndexedBy values_of;
    std::map<std::string, Keys, std::less<>> keys;
  };

  void put(const object::Key& key, ObjectPtr object, std::vector<Change>& changes)
      SL_REQUIRES(mutex_);
  void take_out(const object::Key& key, bool is_final_state_unknown, std::vector<Change>& changes)
      SL_REQUIRES(mutex_);
  void set_indexed(const object::Key& key, const object::Value& object, bool is_in)
      SL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<object::Key, ObjectPtr> objects_ SL_GUARDED_BY(mutex_);
  std::map<std::string, Index, std::less<>> indexes_ SL_GUARDED_BY(mutex_);
};

// Indexes that most controllers want: the UID of the controlling owner, and a label's value.
[[nodiscard]] IndexedBy by_controller();
[[nodiscard]] IndexedBy by_label(std::string name);

}  // namespace sightline::reflector
