// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/fakes/fake_api_server.h"

#include <algorithm>
#include <utility>

#include "common/base/number.h"

#include "operator/kube/object/metadata.h"
#include "operator/kube/object/timestamp.h"

namespace sightline::fakes {

using client::Answer;
using client::Failure;
using client::List;
using client::Reason;
using object::Key;
using object::Resource;
using object::Value;

namespace {

// What watches can begin from.
constexpr std::size_t kPastMax = 100'000;

std::optional<std::uint64_t> version_number(const std::string& text) {
  return whole_number<std::uint64_t>(text);
}

Failure not_found(const Key& key) {
  return api_failure(Reason::NotFound, object::text_of(key) + " not found");
}

// All but what the server itself counts and stamps.
bool is_same_content(const Value& left, const Value& right) {
  Value a = left;
  Value b = right;
  for (Value* value : {&a, &b}) {
    value->erase({"metadata", "resourceVersion"});
    value->erase({"metadata", "generation"});
    value->erase({"metadata", "managedFields"});
  }
  return a == b;
}

// What a change of counts as a new generation: all but metadata and status.
Value spec_of(const Value& object) {
  Value spec = object;
  spec.erase({"metadata"});
  spec.erase({"status"});
  return spec;
}

// The object that a request makes of a live one: the part that its endpoint does not write stays.
Value endpoint_view(const Value& live, Value wanted, const std::string& subresource) {
  if (subresource == "status") {
    Value out = live;
    if (wanted.contains("status")) {
      out.set({"status"}, wanted["status"]);
    } else {
      out.erase({"status"});
    }
    return out;
  }
  if (live.contains("status")) {
    wanted.set({"status"}, live["status"]);
  } else {
    wanted.erase({"status"});
  }
  return wanted;
}

// As it is sent.
Value view_of(const client::Selection& of, const Value& object) {
  if (!of.is_metadata_alone) return object;
  return Value::object({{"apiVersion", "meta.k8s.io/v1"},
                        {"kind", "PartialObjectMetadata"},
                        {"metadata", object["metadata"]}});
}

Value bookmark_of(const Resource& resource, std::uint64_t version) {
  Value object;
  object::name_kind(object, resource);
  object.set({"metadata", "resourceVersion"}, std::to_string(version));
  return object;
}

Value expired_status() {
  return Value::object({{"kind", "Status"},
                        {"apiVersion", "v1"},
                        {"status", "Failure"},
                        {"reason", "Expired"},
                        {"message", "too old resource version"},
                        {"code", 410}});
}

}  // namespace

Failure api_failure(Reason reason, std::string message, std::string cause) {
  const auto status = Value::object(
      {{"kind", "Status"}, {"message", std::move(message)}, {"reason", client::name_of(reason)}});
  Failure failure = client::failure_of(status, 0);
  failure.reason = reason;
  if (!cause.empty()) failure.causes.push_back({std::move(cause), {}, {}});
  return failure;
}

std::optional<Failure> FakeApiServer::begin(Call call) {
  const bool is_write = call.is_write();
  if (is_write && may_write && !may_write()) return api_failure(Reason::NotLeading, "not leading");
  calls_.push_back(std::move(call));
  if (unknown_.contains(calls_.back().resource)) {
    return api_failure(Reason::NotFound, "the server could not find the requested resource");
  }
  return before(calls_.back());
}

std::optional<Failure> FakeApiServer::finish() { return after(calls_.back()); }

void FakeApiServer::tell(const Past& past) {
  std::erase_if(open_, [](const Open& open) { return open.stream.expired(); });
  for (const Open& open : open_) {
    const auto stream = open.stream.lock();
    if (!stream || open.resource != past.resource) continue;
    const bool was_in = past.old_state && is_selected(open.of, *past.old_state);
    const bool is_in = past.new_state && is_selected(open.of, *past.new_state);
    if (is_in) stream->push(was_in ? "MODIFIED" : "ADDED", view_of(open.of, *past.new_state));
    if (!was_in || is_in) continue;
    // The last state that was in the selection, at the version by which it is not.
    Value last = past.new_state ? *past.new_state : *past.old_state;
    last.set({"metadata", "resourceVersion"}, std::to_string(past.version));
    stream->push("DELETED", std::move(last));
  }
}

void FakeApiServer::forget_kind(const Resource& resource) {
  const std::lock_guard lock(mutex_);
  unknown_.insert(resource);
  std::erase_if(entries_, [&](const auto& entry) { return entry.first.first == resource; });
  std::erase_if(past_, [&](const Past& past) { return past.resource == resource; });
  for (const Open& open : open_) {
    const auto stream = open.stream.lock();
    if (stream && open.resource == resource) stream->end();
  }
}

void FakeApiServer::know_kind(const Resource& resource) {
  const std::lock_guard lock(mutex_);
  unknown_.erase(resource);
}

void FakeApiServer::erase(const Id& id) {
  const auto found = entries_.find(id);
  Past past{++version_, id.first, std::move(found->second.object), {}};
  entries_.erase(found);
  tell(past);
  past_.push_back(std::move(past));
}

// The only way to write an object: versions, generations, finalizers, watches.
Answer<Value> FakeApiServer::store(const Resource& resource, Value object, Managers managers) {
  const Id id{resource, object::key_of(object)};
  if (auto refused = admit(resource, object)) return *refused;
  const auto live = entries_.find(id);
  const bool is_new = live == entries_.end();
  object::name_kind(object, resource);
  if (!is_new && is_same_content(live->second.object, object)) {
    live->second.managers = std::move(managers);
    return live->second.object;
  }
  std::int64_t generation = 1;
  if (is_new) {
    object.set({"metadata", "uid"}, "uid-" + std::to_string(++made_));
    object.set({"metadata", "creationTimestamp"},
               object::to_timestamp(WallTime(std::chrono::seconds(made_))));
  } else {
    const Value& old = live->second.object;
    generation = old.at({"metadata", "generation"}).integer().value_or(1);
    if (!(spec_of(old) == spec_of(object))) ++generation;
    for (const std::string_view kept : {"uid", "creationTimestamp", "deletionTimestamp"}) {
      object.erase({"metadata", kept});
      if (old["metadata"].contains(kept)) object.set({"metadata", kept}, old["metadata"][kept]);
    }
  }
  object.set({"metadata", "generation"}, generation);
  object.set({"metadata", "resourceVersion"}, std::to_string(++version_));
  Past past{version_, resource, {}, object};
  if (!is_new) past.old_state = live->second.object;
  entries_[id] = Entry{object, std::move(managers)};
  tell(past);
  past_.push_back(std::move(past));
  if (past_.size() > kPastMax) {
    compacted_ = past_.front().version;
    past_.pop_front();
  }
  if (object::is_being_deleted(object) && object.at({"metadata", "finalizers"}).size() == 0) {
    erase(id);
  }
  return object;
}

Answer<Value> FakeApiServer::get(const Resource& resource, const Key& key) {
  const std::lock_guard lock(mutex_);
  if (auto failure = begin({"get", resource, key, {}, {}, {}})) return *failure;
  const auto found = entries_.find({resource, key});
  if (found == entries_.end()) return not_found(key);
  if (auto failure = finish()) return *failure;
  return found->second.object;
}

// The page that continues an earlier one; like that, of the objects as they were then.
Answer<List> FakeApiServer::page(const client::ListOptions& options) {
  const auto found = pages_.find(options.continue_from);
  if (found == pages_.end()) return api_failure(Reason::Expired, "the continue token is too old");
  List rest = std::move(found->second);
  pages_.erase(found);
  if (options.limit == 0 || rest.items.size() <= options.limit) return rest;
  List first{rest.resource_version, options.continue_from + "+", {}};
  const auto end = rest.items.begin() + static_cast<std::ptrdiff_t>(options.limit);
  first.items.assign(rest.items.begin(), end);
  rest.items.erase(rest.items.begin(), end);
  pages_[first.continue_from] = std::move(rest);
  return first;
}

Answer<List> FakeApiServer::all(const Resource& resource, const client::ListOptions& options) {
  const auto asked = version_number(options.resource_version);
  if (asked && *asked > version_) {
    return api_failure(Reason::Timeout, "too large resource version",
                       std::string(client::kVersionTooLarge));
  }
  List list{std::to_string(version_), {}, {}};
  for (const auto& [id, entry] : entries_) {
    if (id.first == resource && is_selected(options.of, entry.object)) {
      list.items.push_back(view_of(options.of, entry.object));
    }
  }
  const bool is_from_cache = !options.resource_version.empty();
  if (is_from_cache || options.limit == 0 || list.items.size() <= options.limit) return list;
  const std::string token = "page-" + std::to_string(calls_.size());
  pages_[token] = std::move(list);
  return page({options.of, {}, options.limit, token});
}

Answer<List> FakeApiServer::list(const Resource& resource, const client::ListOptions& options) {
  const std::lock_guard lock(mutex_);
  if (auto failure = begin({"list", resource, {options.of.name_space, {}}, {}, {}, {}})) {
    return *failure;
  }
  auto result = options.continue_from.empty() ? all(resource, options) : page(options);
  if (auto failure = finish()) return *failure;
  return result;
}

Answer<std::unique_ptr<client::Watch>> FakeApiServer::watch(const Resource& resource,
                                                            const client::WatchOptions& options) {
  const std::lock_guard lock(mutex_);
  if (auto failure = begin({"watch", resource, {options.of.name_space, {}}, {}, {}, {}})) {
    return *failure;
  }
  auto stream = std::make_shared<FakeStream>();
  auto made = std::make_unique<FakeWatch>(stream);
  const auto from = version_number(options.resource_version);
  if (from && *from != 0 && *from < compacted_) {
    stream->push("ERROR", expired_status());
    stream->end();
    return std::unique_ptr<client::Watch>(std::move(made));
  }
  std::vector<Open> others = std::exchange(open_, {});
  open_.push_back({resource, options.of, stream});
  if (!from || *from == 0) {
    for (const auto& [id, entry] : entries_) {
      if (id.first == resource) tell({version_, resource, {}, entry.object});
    }
  } else {
    for (const Past& past : past_) {
      if (past.version > *from) tell(past);
    }
  }
  open_.insert(open_.end(), others.begin(), others.end());
  if (auto failure = finish()) return *failure;
  return std::unique_ptr<client::Watch>(std::move(made));
}

Answer<Value> FakeApiServer::create(const Resource& resource, const Value& object) {
  const std::lock_guard lock(mutex_);
  const Key key = object::key_of(object);
  if (auto failure = begin({"create", resource, key, {}, {}, object})) return *failure;
  if (key.name.empty()) return api_failure(Reason::Invalid, "name is required");
  if (!object::resource_version_of(object).empty()) {
    return api_failure(Reason::BadRequest, "resourceVersion should not be set");
  }
  if (entries_.contains({resource, key})) {
    return api_failure(Reason::AlreadyExists, object::text_of(key) + " already exists");
  }
  if (terminating_.contains(key.name_space)) {
    return api_failure(Reason::Forbidden, "namespace is being terminated",
                       std::string(client::kNamespaceTerminating));
  }
  auto made = store(resource, object, {});
  if (!made.ok()) return made;
  if (auto failure = finish()) return *failure;
  return made;
}

Answer<Value> FakeApiServer::update(const Resource& resource, const Value& object) {
  const std::lock_guard lock(mutex_);
  const Key key = object::key_of(object);
  if (auto failure = begin({"update", resource, key, {}, {}, object})) return *failure;
  const auto live = entries_.find({resource, key});
  if (live == entries_.end()) return not_found(key);
  const std::string_view version = object::resource_version_of(object);
  if (!version.empty() && version != object::resource_version_of(live->second.object)) {
    return api_failure(Reason::Conflict, "the object has been modified");
  }
  Value next = endpoint_view(live->second.object, object, {});
  Managers managers = live->second.managers;
  take_changed_fields(live->second.object, next, managers);
  auto made = store(resource, std::move(next), std::move(managers));
  if (!made.ok()) return made;
  if (auto failure = finish()) return *failure;
  return made;
}

Answer<Value> FakeApiServer::apply(const Resource& resource, const Value& object,
                                   const client::ApplyOptions& options) {
  const std::lock_guard lock(mutex_);
  const Key key = object::key_of(object);
  if (auto failure =
          begin({"apply", resource, key, options.subresource, options.manager, object})) {
    return *failure;
  }
  if (options.manager.empty()) return api_failure(Reason::Invalid, "fieldManager is required");
  const auto live = entries_.find({resource, key});
  const bool is_new = live == entries_.end();
  if (is_new && !options.subresource.empty()) return not_found(key);
  if (is_new && !object::uid_of(object).empty()) {
    return api_failure(Reason::Conflict, "uid mismatch: the object does not exist");
  }
  if (is_new && terminating_.contains(key.name_space)) {
    return api_failure(Reason::Forbidden, "namespace is being terminated",
                       std::string(client::kNamespaceTerminating));
  }
  const Value base = is_new ? Value::object() : live->second.object;
  for (const std::string_view own : {"uid", "resourceVersion"}) {
    const std::string_view wanted = object["metadata"][own].text();
    if (!is_new && !wanted.empty() && wanted != base["metadata"][own].text()) {
      return api_failure(Reason::Conflict, "precondition failed: " + std::string(own));
    }
  }
  // The endpoint ignores what it does not write, and its manager does not own it.
  Value wanted = object;
  if (options.subresource.empty()) {
    wanted.erase({"status"});
  } else {
    wanted = Value::object({{"metadata", object["metadata"]}});
    if (object.contains("status")) wanted.member("status") = object["status"];
    wanted.erase({"metadata", "labels"});
    // A pod's status takes them too.
    if (resource.plural != "pods") wanted.erase({"metadata", "annotations"});
  }
  Managers managers = is_new ? Managers() : live->second.managers;
  const std::string manager = options.manager + "/" + options.subresource;
  auto applied = apply_fields(base, wanted, {manager, options.is_forced}, managers);
  if (!applied.conflicts.empty() && !options.is_forced) {
    auto conflict = api_failure(Reason::Conflict, "Apply failed");
    for (std::string& path : applied.conflicts) {
      conflict.causes.push_back({std::string(client::kFieldManagerConflict), {}, std::move(path)});
    }
    return conflict;
  }
  auto made = store(resource, std::move(applied.object), std::move(managers));
  if (!made.ok()) return made;
  if (auto failure = finish()) return *failure;
  return made;
}

Answer<Value> FakeApiServer::merge_patch(const Resource& resource, const Key& key,
                                         const Value& patch, const std::string& subresource) {
  const std::lock_guard lock(mutex_);
  if (auto failure = begin({"patch", resource, key, subresource, {}, patch})) return *failure;
  const auto live = entries_.find({resource, key});
  if (live == entries_.end()) return not_found(key);
  const std::string_view version = object::resource_version_of(patch);
  if (!version.empty() && version != object::resource_version_of(live->second.object)) {
    return api_failure(Reason::Conflict, "the object has been modified");
  }
  Value next = live->second.object;
  next.merge(patch);
  next = endpoint_view(live->second.object, std::move(next), subresource);
  Managers managers = live->second.managers;
  take_changed_fields(live->second.object, next, managers);
  auto made = store(resource, std::move(next), std::move(managers));
  if (!made.ok()) return made;
  if (auto failure = finish()) return *failure;
  return made;
}

Answer<Done> FakeApiServer::remove(const Resource& resource, const Key& key,
                                   const client::DeleteOptions& options) {
  const std::lock_guard lock(mutex_);
  if (auto failure = begin({"delete", resource, key, {}, {}, {}})) return *failure;
  const auto live = entries_.find({resource, key});
  if (live == entries_.end()) return not_found(key);
  Value object = live->second.object;
  const bool is_other = !options.uid.empty() && options.uid != object::uid_of(object);
  const bool is_changed = !options.resource_version.empty() &&
                          options.resource_version != object::resource_version_of(object);
  if (is_other || is_changed) return api_failure(Reason::Conflict, "Precondition failed");
  if (object.at({"metadata", "finalizers"}).size() == 0) {
    erase({resource, key});
  } else if (!object::is_being_deleted(object)) {
    object.set({"metadata", "deletionTimestamp"},
               object::to_timestamp(WallTime(std::chrono::seconds(version_))));
    object.set({"metadata", "resourceVersion"}, std::to_string(++version_));
    Past past{version_, resource, std::exchange(live->second.object, object), object};
    tell(past);
    past_.push_back(std::move(past));
  }
  if (auto failure = finish()) return *failure;
  return Done{};
}

void FakeApiServer::put(const Resource& resource, Value object) {
  const std::lock_guard lock(mutex_);
  const auto live = entries_.find({resource, object::key_of(object)});
  Managers managers = live == entries_.end() ? Managers() : live->second.managers;
  if (live != entries_.end()) take_changed_fields(live->second.object, object, managers);
  SL_CHECK(store(resource, std::move(object), std::move(managers)).ok());
}

std::size_t FakeApiServer::collect_garbage() {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (bool is_done = false; !is_done;) {
    std::set<std::string, std::less<>> alive;
    for (const auto& [id, entry] : entries_) alive.emplace(object::uid_of(entry.object));
    const auto orphan = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
      const std::string_view owner = object::controller_uid_of(entry.second.object);
      return !owner.empty() && !alive.contains(owner);
    });
    is_done = orphan == entries_.end();
    if (is_done) break;
    erase(Id(orphan->first));
    ++count;
  }
  return count;
}

void FakeApiServer::terminate_namespace(const std::string& name) {
  const std::lock_guard lock(mutex_);
  terminating_.insert(name);
}

void FakeApiServer::compact() {
  const std::lock_guard lock(mutex_);
  compacted_ = version_;
  past_.clear();
  pages_.clear();
}

void FakeApiServer::send_bookmarks() {
  const std::lock_guard lock(mutex_);
  for (const Open& open : open_) {
    const auto stream = open.stream.lock();
    if (stream) stream->push("BOOKMARK", bookmark_of(open.resource, version_));
  }
}

void FakeApiServer::end_watches(std::optional<Failure> failure) {
  const std::lock_guard lock(mutex_);
  for (const Open& open : open_) {
    if (const auto stream = open.stream.lock()) stream->end(failure);
  }
  open_.clear();
}

std::vector<Value> FakeApiServer::objects(const Resource& resource) const {
  const std::lock_guard lock(mutex_);
  std::vector<Value> all;
  for (const auto& [id, entry] : entries_) {
    if (id.first == resource) all.push_back(entry.object);
  }
  return all;
}

std::optional<Value> FakeApiServer::find(const Resource& resource, const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find({resource, key});
  return found == entries_.end() ? std::nullopt : std::optional(found->second.object);
}

std::vector<Call> FakeApiServer::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::vector<Call> FakeApiServer::writes() const {
  std::vector<Call> all = calls();
  std::erase_if(all, [](const Call& call) { return !call.is_write(); });
  return all;
}

std::uint64_t FakeApiServer::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

std::size_t FakeApiServer::open_watches() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(open_.begin(), open_.end(), [](const Open& open) {
    const auto stream = open.stream.lock();
    return stream && !stream->is_over();
  }));
}

}  // namespace sightline::fakes
