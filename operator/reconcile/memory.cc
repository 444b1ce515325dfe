// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/memory.h"

#include "operator/kube/object/metadata.h"

namespace sightline::reconcile {

using object::Key;
using object::Value;

void Memory::note_status(const Key& key, const Value& object, const Value& written) {
  // The write changed nothing, so the watch will not bring a new version.
  if (object::resource_version_of(written) == object::resource_version_of(object)) return;
  const MutexLock lock(mutex_);
  noted_[key].outdated = object::resource_version_of(object);
}

bool Memory::is_outdated(const Key& key, const Value& object) {
  const MutexLock lock(mutex_);
  const auto noted = noted_.find(key);
  return noted != noted_.end() && !noted->second.outdated.empty() &&
         noted->second.outdated == object::resource_version_of(object);
}

void Memory::note_specs(const Key& key, const std::string& uid, const KeptSpecs& specs) {
  const MutexLock lock(mutex_);
  ObjectNotes& noted = noted_[key];
  noted.uid = uid;
  noted.specs = specs;
}

std::optional<KeptSpecs> Memory::specs(const Key& key, const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto noted = noted_.find(key);
  // Another object of the same name has other specs.
  if (noted == noted_.end() || noted->second.uid != uid) return std::nullopt;
  return noted->second.specs;
}

Duration Memory::note_failure(const Key& key, Instant now) {
  const MutexLock lock(mutex_);
  ObjectNotes& noted = noted_[key];
  if (!noted.failing_since) noted.failing_since = now;
  return now - *noted.failing_since;
}

void Memory::note_success(const Key& key) {
  const MutexLock lock(mutex_);
  const auto noted = noted_.find(key);
  if (noted != noted_.end()) noted->second.failing_since.reset();
}

void Memory::forget(const Key& key) {
  const MutexLock lock(mutex_);
  noted_.erase(key);
}

}  // namespace sightline::reconcile
