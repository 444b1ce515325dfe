// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/object/value.h"
#include "operator/owned/caches.h"

namespace sightline::owned {

// The manager of the fields that the operator writes.
inline constexpr std::string_view kFieldManager = "sightline-operator";
// The manager of spec.replicas while it passes from the operator to an autoscaler.
inline constexpr std::string_view kHandOverManager = "sightline-operator-replicas";

// Options to apply a status. Other managers may own other fields.
client::ApplyOptions as_status();

// The members of `live` that `desired` has too, by the same paths, with their values in `live`. A
// list of another length is taken whole. Pure.
object::Value projection_of(const object::Value& desired, const object::Value& live);

// A JSON Merge Patch that turns `live` into `wanted`. It replaces lists whole, and removes
// additional members of any manager. Pure.
object::Value replacement_of(const object::Value& wanted, const object::Value& live);

// True if the object of that name belongs to another owner and may not be taken back. It has
// another controller, or has no controller and not the label of the owner's MultimodalRouter. Pure.
bool is_foreign(const object::Value& desired, const object::Value& live);
// The failure NameTaken for this case.
client::Failure name_taken(const object::Value& desired, const object::Value& live);

// The path of the first member that differs, for example "/spec/replicas". Empty: all are equal.
// Pure.
std::string first_difference(const object::Value& left, const object::Value& right);

// Writes objects with server-side apply, each only if it has changed since the last write. The API
// server may store another form of a value (defaults, quantities). The applier learns this form
// from the answer, so it writes everything once after a start.
// Thread safety: all methods from any thread, but one MultimodalRouter from one thread at a time.
class Applier {
 public:
  // Both must outlive it.
  Applier(client::ApiClient& api, const Caches& caches) : api_(api), caches_(caches) {}

  // Writes the object if needed. Returns whether its spec has changed. An object that has the label
  // of its MultimodalRouter but no controller is taken back. Failures:
  // - Forbidden with the cause NameTaken: another owner has an object of that name
  // - Forbidden: the API server did not store the label by which the operator watches the object
  client::Answer<bool> apply(const object::Value& desired);

  // What prune() keeps, besides objects that others control.
  struct PruneExceptions {
    // For example "Kind/name".
    std::set<std::string> names;
    // Keeps all objects with the label of one of these revisions.
    std::set<std::string> revisions;
    // The revisions of which all but the frontends go.
    std::set<std::string> leaving;
  };
  // Deletes the objects that the owner controls and that `kept` does not name. Frontends of a
  // leaving revision stay until its pods are gone.
  client::Answer<Done> prune(std::string_view owner_uid, const PruneExceptions& kept);

  // Drops the state of the objects of this MultimodalRouter: no one writes them any more.
  void forget(const object::Key& router);

 private:
  struct Written {
    object::Key router;
    object::Value desired;
    // The projection of the API server's answer.
    object::Value after;
    // The resource version in the cache at that time. Empty: the cache did not have it.
    std::string before;
  };
  // Kind and key.
  using Name = std::pair<std::string, object::Key>;

  // Checks the owner before an object without an owner is written. If a user deletes a
  // MultimodalRouter and orphans its objects, they must stay. With the deleted owner set again, the
  // garbage collector would delete them.
  client::Answer<Done> take_back(const object::Value& desired);

  // Before spec.replicas is left out, another manager takes it with its present value, until an
  // autoscaler changes it. Otherwise the API server would remove the field, which means one
  // replica.
  client::Answer<Done> hand_over(const object::Resource& resource, const object::Value& desired);

  [[nodiscard]] bool is_as_written(const Name& name, const object::Value& desired,
                                   const object::Value& live) const;

  client::ApiClient& api_;
  const Caches& caches_;
  mutable Mutex mutex_;
  std::map<Name, Written> written_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::owned
