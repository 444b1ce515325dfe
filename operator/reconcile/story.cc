// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/story.h"

#include <algorithm>

#include "operator/judge/conditions.h"

namespace sightline::reconcile {
namespace {

using object::Value;

bool is_bad(const crd::Condition& condition) {
  if (condition.reason == "Updating" || condition.type == judge::kProgressing) return false;
  const bool is_true = condition.status == crd::ConditionStatus::True;
  return condition.type == judge::kDegraded ? is_true : !is_true;
}

// Ready repeats the reason of another condition, which has its own event. Or it has a reason of its
// own: something that could not be read, written or found.
bool has_own_reason(const std::vector<crd::Condition>& now, const crd::Condition& ready) {
  if (ready.reason == "Updating" || ready.status == crd::ConditionStatus::True) return false;
  return std::none_of(now.begin(), now.end(), [&](const crd::Condition& one) {
    return one.type != judge::kReady && one.reason == ready.reason;
  });
}

bool is_told(const std::vector<crd::Condition>& before, const std::vector<crd::Condition>& now,
             const crd::Condition& condition) {
  const auto same = std::find_if(before.begin(), before.end(), [&](const crd::Condition& one) {
    return one.type == condition.type;
  });
  const bool is_ready = condition.type == judge::kReady;
  const bool is_of_interest = !is_ready || has_own_reason(now, condition);
  if (same == before.end()) {
    return condition.type == judge::kAccepted || (is_ready && is_of_interest);
  }
  return same->status != condition.status || (same->reason != condition.reason && is_of_interest);
}

// Many events may wait for the API server, so they do not keep the object's whole spec in memory.
Value name_of(const Value& object) {
  Value named = Value::object({{"apiVersion", object["apiVersion"]}, {"kind", object["kind"]}});
  for (const std::string_view member : {"name", "namespace", "uid", "resourceVersion"}) {
    named.set({"metadata", member}, object.at({"metadata", member}));
  }
  return named;
}

}  // namespace

std::vector<recorder::ObjectEvent> happenings_of(const object::Value& object,
                                                 const std::vector<crd::Condition>& before,
                                                 const std::vector<crd::Condition>& now) {
  std::vector<recorder::ObjectEvent> happenings;
  for (const crd::Condition& condition : now) {
    if (!is_told(before, now, condition)) continue;
    happenings.push_back({.regarding = name_of(object),
                          .is_warning = is_bad(condition),
                          .reason = condition.reason,
                          .action = "Reconcile",
                          .note = condition.type + ": " + condition.message});
  }
  return happenings;
}

}  // namespace sightline::reconcile
