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

// Owner of the fields that we write.
inline constexpr std::string_view kFieldManager = "sightline-operator";
// Owner of spec.replicas while it goes from us to an autoscaler.
inline constexpr std::string_view kHandOverManager = "sightline-operator-replicas";

// Into the status of an object, of which other fields may be somebody else's.
client::ApplyOptions as_status();

// What `desired` says of `live`: its members, by the same paths, with the values that `live` has.
// Lists of another length are taken as they are. Pure.
object::Value projection_of(const object::Value& desired, const object::Value& live);

// A JSON Merge Patch that makes `live` what `wanted` is, whoever wrote what is more in it: lists
// are replaced whole, members that are too many are removed. Pure.
object::Value replacement_of(const object::Value& wanted, const object::Value& live);

// An object of that name that this owner does not control, and may not take back: it has another
// controller, or none and not the label of the owner's MultimodalRouter. Pure.
bool is_foreign(const object::Value& desired, const object::Value& live);
client::Failure name_taken(const object::Value& desired, const object::Value& live);

// Path of the first member that differs, "/spec/replicas"; empty: none does. Pure.
std::string first_difference(const object::Value& left, const object::Value& right);

// Writes objects by server-side apply, each only if it is not as it was after it was last written
// so: what the API server makes of a value (defaults, quantities in another form) is learnt from
// its answer, and after a start everything is written once.
// Thread safety: all methods from any thread; for one MultimodalRouter from one at a time.
class Applier {
 public:
  // They must outlive it.
  Applier(client::ApiClient& api, const Caches& caches) : api_(api), caches_(caches) {}

  // Whether its spec has become another one. One that carries the label of its MultimodalRouter and
  // is controlled by nobody is taken back. Fails with Forbidden and the cause NameTaken if an
  // object of that name belongs to somebody else, and with Forbidden if the label by which it is
  // watched is not as it was written.
  client::Answer<bool> apply(const object::Value& desired);

  // What stays of a prune(), beside what others control.
  struct Kept {
    std::set<std::string> names;      // "Kind/name"
    std::set<std::string> revisions;  // all that carries the label of one of these
    std::set<std::string> leaving;    // of these all but their frontends
  };
  // Deletes what the owner controls and `kept` has not. Frontends of revisions that are leaving are
  // there until their pods are gone.
  client::Answer<Done> prune(std::string_view owner_uid, const Kept& kept);

  // The objects of this namespace and MultimodalRouter are written by nobody any more.
  void forget(const object::Key& router);

 private:
  struct Written {
    object::Key router;
    object::Value desired;
    object::Value after;  // projection of the API server's answer
    std::string before;   // resource version that the cache had of it then; empty: none
  };
  using Name = std::pair<std::string, object::Key>;  // kind, key

  // Before an object without an owner is written. Who deletes a MultimodalRouter and orphans what
  // it made must keep that: with the owner of yesterday the garbage collector would delete it.
  client::Answer<Done> take_back(const object::Value& desired);

  // A field of ours that is left out is gone, and replicas that are gone are one: so before
  // spec.replicas is left out, another owner has it as it is, until an autoscaler changes it.
  client::Answer<Done> hand_over(const object::Resource& resource, const object::Value& desired);

  [[nodiscard]] bool is_as_written(const Name& name, const object::Value& desired,
                                   const object::Value& live) const;

  client::ApiClient& api_;
  const Caches& caches_;
  mutable Mutex mutex_;
  std::map<Name, Written> written_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::owned
