// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "operator/kube/client/failure.h"
#include "operator/kube/object/resource.h"
#include "operator/kube/object/value.h"

namespace sightline::client {

// Which objects of a resource. Empty values select all.
struct Selection {
  std::string name_space;
  // For example "a=b,c in (d,e)".
  std::string labels;
  // For example "metadata.name=a".
  std::string fields;
  // Requests only the metadata of each object (PartialObjectMetadata). The server then does not
  // send the content of Secrets.
  bool is_metadata_alone = false;
};

// What to list.
struct ListOptions {
  Selection of;
  // Empty: the newest state. "0": what the server has in its cache. Else: not older than this.
  std::string resource_version;
  // The size of a page. 0: all objects in one page.
  std::size_t limit = 0;
  // List::continue_from of the page before.
  std::string continue_from;
};

// A page of objects.
struct List {
  std::string resource_version;
  // Empty: this is the last page.
  std::string continue_from;
  // With kind and apiVersion.
  std::vector<object::Value> items;
};

// What to watch.
struct WatchOptions {
  Selection of;
  std::string resource_version;
  // The server ends the watch after this time.
  Duration timeout = std::chrono::minutes(5);
};

// What next() returns.
struct WatchEvent {
  enum class EventKind {
    // An event of this type, with this object.
    Event,
    // Nothing within time_max.
    Silent,
    // The orderly end, by the server or by cancel().
    Ended,
  };
  EventKind what = EventKind::Silent;
  // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or another type of the server.
  std::string type;
  // Of ERROR: a Status.
  object::Value object;
};

// A stream of changes.
// Thread safety: next() from one thread, cancel() from any.
class Watch {
 public:
  virtual ~Watch() = default;
  // Waits at most time_max. After a Failure or Ended nothing follows.
  virtual Answer<WatchEvent> next(Duration time_max) = 0;
  // Ends the watch. A waiting next() returns.
  virtual void cancel() = 0;
};

// How to apply an object.
struct ApplyOptions {
  // The owner of the fields, 1 to 128 bytes.
  std::string manager;
  // Takes fields that others own.
  bool is_forced = true;
  // "status", or empty.
  std::string subresource;
};

// What happens to the objects that a deleted object owns.
enum class Propagation { Background, Foreground, Orphan };

// Which state of an object to delete.
struct DeleteOptions {
  // Deletes only this object. Empty: any object of the name.
  std::string uid;
  // Deletes only if it is unchanged. Empty: in any state.
  std::string resource_version;
  Propagation propagation = Propagation::Background;
};

// The calls to the API server that an operator needs. An object in an argument carries its own
// namespace and name.
// Thread safety: all methods from any thread. They wait for the answer.
class ApiClient {
 public:
  virtual ~ApiClient() = default;

  // Reads.
  virtual Answer<object::Value> get(const object::Resource& resource, const object::Key& key) = 0;
  virtual Answer<List> list(const object::Resource& resource, const ListOptions& options) = 0;
  virtual Answer<std::unique_ptr<Watch>> watch(const object::Resource& resource,
                                               const WatchOptions& options) = 0;

  // Writes. Each returns the new state of the object. If this process may not write, each fails
  // with NotLeading and sends nothing.
  virtual Answer<object::Value> create(const object::Resource& resource,
                                       const object::Value& object) = 0;
  // Replaces an object. Fails with Conflict if its resourceVersion is not the latest.
  virtual Answer<object::Value> update(const object::Resource& resource,
                                       const object::Value& object) = 0;
  // Server-side apply: creates the object, or sets the fields that `object` has.
  virtual Answer<object::Value> apply(const object::Resource& resource, const object::Value& object,
                                      const ApplyOptions& options) = 0;
  // A JSON Merge Patch. An empty subresource patches the object itself.
  virtual Answer<object::Value> merge_patch(const object::Resource& resource,
                                            const object::Key& key, const object::Value& patch,
                                            const std::string& subresource) = 0;
  virtual Answer<Done> remove(const object::Resource& resource, const object::Key& key,
                              const DeleteOptions& options) = 0;
};

// All objects, page by page. If the pages expire, lists once more without pages.
Answer<List> list_all(ApiClient& api, const object::Resource& resource, ListOptions options);

}  // namespace sightline::client
