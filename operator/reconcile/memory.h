// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "operator/kube/object/resource.h"
#include "operator/kube/object/value.h"
#include "operator/reconcile/specs.h"

namespace sightline::reconcile {

// What one reconciliation leaves for the next, by object. A later one can find all this out again.
// Thread safety: all methods from any thread.
class Memory {
 public:
  // Records that a status was written on this object, which became `written`. A write that changed
  // nothing is not recorded.
  void note_status(const object::Key& key, const object::Value& object,
                   const object::Value& written);
  // Whether this is the object before that write: the cache does not have the write yet.
  bool is_outdated(const object::Key& key, const object::Value& object);

  // Records the kept specs. No other writer changes them, so this record is more reliable than the
  // ConfigMap, which a user may damage.
  void note_specs(const object::Key& key, const std::string& uid, const KeptSpecs& specs);
  // The recorded specs of the object with this UID. Nothing: there is no record.
  std::optional<KeptSpecs> specs(const object::Key& key, const std::string& uid);

  // Records a failed reconciliation. Returns for how long all of them have failed.
  Duration note_failure(const object::Key& key, Instant now);
  // Ends the row of failures.
  void note_success(const object::Key& key);

  // Drops the state of a deleted object.
  void forget(const object::Key& key);

 private:
  struct ObjectNotes {
    // The resourceVersion on which the last status was written.
    std::string outdated;
    // Of the object whose specs these are.
    std::string uid;
    std::optional<KeptSpecs> specs;
    std::optional<Instant> failing_since;
  };

  Mutex mutex_;
  std::map<object::Key, ObjectNotes> noted_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::reconcile
