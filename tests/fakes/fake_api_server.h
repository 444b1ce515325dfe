// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/client/api_client.h"
#include "tests/fakes/fake_apply.h"
#include "tests/fakes/fake_watch.h"

namespace sightline::fakes {

// A request to the fake server.
struct Call {
  std::string verb;  // get list watch create update apply patch delete
  object::Resource resource;
  object::Key key;          // list and watch: the namespace
  std::string subresource;  // "status" or empty
  std::string manager;      // of an apply
  object::Value body;

  [[nodiscard]] bool is_write() const { return verb != "get" && verb != "list" && verb != "watch"; }
};

// What a test wants to fail: a Failure is what the caller gets. It may be set at any time.
template <typename... Arguments>
class Hook {
 public:
  using Function = std::function<std::optional<client::Failure>(const Arguments&...)>;

  Hook& operator=(Function function) {
    const std::lock_guard lock(mutex_);
    function_ = std::move(function);
    return *this;
  }
  std::optional<client::Failure> operator()(const Arguments&... arguments) const {
    Function function;
    {
      const std::lock_guard lock(mutex_);
      function = function_;
    }
    return function ? function(arguments...) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  Function function_;
};

// The API server as far as an ApiClient shows it, in memory: resource versions, conflicts, watches
// with bookmarks and compaction, server-side apply with owners of fields, preconditions,
// finalizers, generations. It knows no schemas and no admission but `admit`, and collects garbage
// only when told.
// Thread safety: all methods from any thread; hooks run under its lock, so they must not call it.
class FakeApiServer : public client::ApiClient {
 public:
  // Asked before a call is carried out, and after it was: a write that fails after it was carried
  // out is how an answer gets lost.
  Hook<Call> before;
  Hook<Call> after;
  // Judges the object that a write would make.
  Hook<object::Resource, object::Value> admit;
  // Whether writes are sent at all: what the client asks for real. Set before the first call.
  std::function<bool()> may_write;

  client::Answer<object::Value> get(const object::Resource& resource,
                                    const object::Key& key) override;
  client::Answer<client::List> list(const object::Resource& resource,
                                    const client::ListOptions& options) override;
  client::Answer<std::unique_ptr<client::Watch>> watch(
      const object::Resource& resource, const client::WatchOptions& options) override;
  client::Answer<object::Value> create(const object::Resource& resource,
                                       const object::Value& object) override;
  client::Answer<object::Value> update(const object::Resource& resource,
                                       const object::Value& object) override;
  client::Answer<object::Value> apply(const object::Resource& resource, const object::Value& object,
                                      const client::ApplyOptions& options) override;
  client::Answer<object::Value> merge_patch(const object::Resource& resource,
                                            const object::Key& key, const object::Value& patch,
                                            const std::string& subresource) override;
  client::Answer<Done> remove(const object::Resource& resource, const object::Key& key,
                              const client::DeleteOptions& options) override;

  // What a test does to it. Status written by others, pods that become ready: any state at all.
  void put(const object::Resource& resource, object::Value object);
  // Deletes what a controller owned that is gone, until there is none; how many.
  std::size_t collect_garbage();
  // A kind is not known until it is said to be again: all of its objects and watches are gone.
  void forget_kind(const object::Resource& resource);
  void know_kind(const object::Resource& resource);
  // Nothing can be created in that namespace any more.
  void terminate_namespace(const std::string& name);
  // Forgets the past: older versions and pages begun are Expired.
  void compact();
  // Every watch is told the version.
  void send_bookmarks();
  // Ends all watches, in order or with a failure; they end after what they had still to tell.
  void end_watches(std::optional<client::Failure> failure = {});

  [[nodiscard]] std::vector<object::Value> objects(const object::Resource& resource) const;
  [[nodiscard]] std::optional<object::Value> find(const object::Resource& resource,
                                                  const object::Key& key) const;
  // All so far, and those of them that would change something.
  [[nodiscard]] std::vector<Call> calls() const;
  [[nodiscard]] std::vector<Call> writes() const;
  [[nodiscard]] std::uint64_t version() const;
  [[nodiscard]] std::size_t open_watches() const;

 private:
  struct Entry {
    object::Value object;
    Managers managers;
  };
  struct Past {
    std::uint64_t version = 0;
    object::Resource resource;
    std::optional<object::Value> old_state;
    std::optional<object::Value> new_state;
  };
  struct Open {
    object::Resource resource;
    client::Selection of;
    std::weak_ptr<FakeStream> stream;
  };
  using Id = std::pair<object::Resource, object::Key>;

  std::optional<client::Failure> begin(Call call);
  std::optional<client::Failure> finish();
  client::Answer<object::Value> store(const object::Resource& resource, object::Value object,
                                      Managers managers);
  void erase(const Id& id);
  void tell(const Past& past);
  client::Answer<client::List> page(const client::ListOptions& options);
  client::Answer<client::List> all(const object::Resource& resource,
                                   const client::ListOptions& options);

  mutable std::mutex mutex_;  // guards what follows
  std::map<Id, Entry> entries_;
  std::uint64_t version_ = 1;
  std::uint64_t compacted_ = 0;  // this version and older ones are forgotten
  std::uint64_t made_ = 0;       // objects, ever
  std::deque<Past> past_;
  std::vector<Open> open_;
  std::map<std::string, client::List> pages_;  // what follows a page, by its token
  std::set<std::string> terminating_;
  std::set<object::Resource> unknown_;
  std::vector<Call> calls_;
};

// A failure as the API server would word it.
[[nodiscard]] client::Failure api_failure(client::Reason reason, std::string message,
                                          std::string cause = {});

}  // namespace sightline::fakes
