// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/kube/object/value.h"

// Server-side apply on values, reduced: lists of objects that all have a "name" (or all a "type")
// are merged by it, other lists are one value, and a schema is not known.
namespace sightline::fakes {

// The leaves of an object that somebody may own, by path: ".spec.ports[name=http].port".
using Fields = std::map<std::string, object::Value>;
[[nodiscard]] Fields fields_of(const object::Value& object);

// Who owns which paths.
using Managers = std::map<std::string, std::set<std::string>>;
// Who applies; forced: takes what others own.
struct Applier {
  std::string manager;
  bool is_forced = false;
};

struct Applied {
  object::Value object;
  std::vector<std::string> conflicts;  // paths of others, with other values; the rest is as asked
};

// What becomes of an object when a manager applies one: its fields as they are there, those it
// owned and leaves out gone unless others own them too. Managers change only without conflicts, or
// when it is forced.
[[nodiscard]] Applied apply_fields(const object::Value& live, const object::Value& wanted,
                                   const Applier& applier, Managers& managers);

// After a write that is no apply: who wrote another value took the field from its owners.
void take_changed_fields(const object::Value& before, const object::Value& after,
                         Managers& managers);

}  // namespace sightline::fakes
