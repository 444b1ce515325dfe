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

// Which objects of a resource. Empty: all.
struct Selection {
  std::string name_space;
  std::string labels;  // "a=b,c in (d,e)"
  std::string fields;  // "metadata.name=a"
  // Of each only what it says about itself (PartialObjectMetadata): nothing of a Secret's content
  // is sent.
  bool is_metadata_alone = false;
};

struct ListOptions {
  Selection of;
  // Empty: the newest; "0": what the server has at hand; else not older than that.
  std::string resource_version;
  std::size_t limit = 0;      // of a page; 0: all at once
  std::string continue_from;  // List::continue_from of the page before
};

struct List {
  std::string resource_version;
  std::string continue_from;         // empty: this is the last page
  std::vector<object::Value> items;  // with kind and apiVersion
};

struct WatchOptions {
  Selection of;
  std::string resource_version;
  Duration timeout = std::chrono::minutes(5);  // after which the server ends it
};

// What comes next on a watch.
struct WatchEvent {
  enum class What {
    Event,   // of this type, with this object
    Silent,  // nothing within the time that was given
    Ended,   // in an orderly way, by the server or by cancel()
  };
  What what = What::Silent;
  std::string type;      // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR or what the server invents
  object::Value object;  // of ERROR, a Status
};

// A stream of changes.
// Thread safety: next() from one thread, cancel() from any.
class Watch {
 public:
  virtual ~Watch() = default;
  // Waits no longer than that. After a Failure or Ended comes nothing else.
  virtual Answer<WatchEvent> next(Duration time_max) = 0;
  virtual void cancel() = 0;
};

struct ApplyOptions {
  std::string manager;      // who owns the fields, 1 to 128 bytes
  bool is_forced = true;    // takes fields that others own
  std::string subresource;  // "status", or empty
};

enum class Propagation { Background, Foreground, Orphan };

struct DeleteOptions {
  std::string uid;               // only if it is this object; empty: any
  std::string resource_version;  // only if it is unchanged; empty: in any state
  Propagation propagation = Propagation::Background;
};

// The API server, as far as an operator uses it. Objects name their namespace and name themselves.
// Thread safety: all methods from any thread; they wait for the answer.
class ApiClient {
 public:
  virtual ~ApiClient() = default;

  virtual Answer<object::Value> get(const object::Resource& resource, const object::Key& key) = 0;
  virtual Answer<List> list(const object::Resource& resource, const ListOptions& options) = 0;
  virtual Answer<std::unique_ptr<Watch>> watch(const object::Resource& resource,
                                               const WatchOptions& options) = 0;

  // Each gives the object as it then is. All that follows fails with NotLeading, unsent, when this
  // process may not write.
  virtual Answer<object::Value> create(const object::Resource& resource,
                                       const object::Value& object) = 0;
  // Replaces an object; fails with Conflict if it names a resourceVersion that is not the latest.
  virtual Answer<object::Value> update(const object::Resource& resource,
                                       const object::Value& object) = 0;
  // Server-side apply: creates the object, or makes the fields that it has as they are here.
  virtual Answer<object::Value> apply(const object::Resource& resource, const object::Value& object,
                                      const ApplyOptions& options) = 0;
  // JSON Merge Patch, of a subresource unless that is empty.
  virtual Answer<object::Value> merge_patch(const object::Resource& resource,
                                            const object::Key& key, const object::Value& patch,
                                            const std::string& subresource) = 0;
  virtual Answer<Done> remove(const object::Resource& resource, const object::Key& key,
                              const DeleteOptions& options) = 0;
};

// All objects, page by page. If the pages expire meanwhile, once more in one piece.
Answer<List> list_all(ApiClient& api, const object::Resource& resource, ListOptions options);

}  // namespace sightline::client
