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

// What one reconciliation leaves to the next, by the object. All of it can be found out again.
// Thread safety: all methods from any thread.
class Memory {
 public:
  // A status was written on this object, which became `written`.
  void note_status(const object::Key& key, const object::Value& object,
                   const object::Value& written);
  // Whether this is the object as it was before that: the cache has not heard of it yet.
  bool is_outdated(const object::Key& key, const object::Value& object);

  // What was noted of specs: nobody else writes that, so it counts more than the ConfigMap that
  // holds it, of which somebody may take something.
  void note_specs(const object::Key& key, const std::string& uid, const KeptSpecs& specs);
  std::optional<KeptSpecs> specs(const object::Key& key, const std::string& uid);

  // A reconciliation failed; since when all of them have.
  Duration note_failure(const object::Key& key, Instant now);
  void note_success(const object::Key& key);

  void forget(const object::Key& key);

 private:
  struct Noted {
    std::string outdated;  // the resourceVersion on which the last status was written
    std::string uid;       // of the object whose specs they are
    std::optional<KeptSpecs> specs;
    std::optional<Instant> failing_since;
  };

  Mutex mutex_;
  std::map<object::Key, Noted> noted_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::reconcile
