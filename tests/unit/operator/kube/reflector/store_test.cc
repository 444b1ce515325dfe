// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/reflector/store.h"

#include <optional>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "operator/kube/object/metadata.h"
#include "tests/fakes/fake_api_server.h"

namespace sightline::reflector {
namespace {

using client::Reason;
using client::WatchEvent;
using object::Key;
using object::Value;

const object::Resource kPods{"", "v1", "pods", "Pod"};

Value pod(const std::string& name, const std::string& version, const std::string& revision = {}) {
  Value object;
  object.set({"metadata", "name"}, name);
  object.set({"metadata", "namespace"}, "s");
  object.set({"metadata", "uid"}, "u-" + name);
  object.set({"metadata", "resourceVersion"}, version);
  if (!revision.empty()) object.set({"metadata", "labels", "revision"}, revision);
  return object;
}

StoreChange change(StoreChange::ChangeKind what, std::vector<Value> objects) {
  return {what, std::move(objects)};
}

TEST(Store, ListReportsObjectsThatVanished) {
  Store store;
  EXPECT_EQ(
      store.apply(change(StoreChange::ChangeKind::Replace, {pod("a", "1"), pod("b", "2")})).size(),
      2U);
  const auto changes =
      store.apply(change(StoreChange::ChangeKind::Replace, {pod("b", "2"), pod("c", "3")}));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(object::key_of(*changes[0].before).name, "a");
  EXPECT_EQ(changes[0].after, nullptr);
  EXPECT_TRUE(changes[0].is_final_state_unknown);
  EXPECT_EQ(object::key_of(*changes[1].after).name, "c");
}

TEST(Store, TheSameStateAgainIsNoChange) {
  Store store;
  static_cast<void>(store.apply(change(StoreChange::ChangeKind::Upsert, {pod("a", "1")})));
  EXPECT_TRUE(store.apply(change(StoreChange::ChangeKind::Upsert, {pod("a", "1")})).empty());
  const auto changes = store.apply(change(StoreChange::ChangeKind::Upsert, {pod("a", "2")}));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(object::resource_version_of(*changes[0].before), "1");
  EXPECT_EQ(object::resource_version_of(*changes[0].after), "2");
}

TEST(Store, ObjectsAreFoundByWhatTheyAreIndexedBy) {
  Store store({{"revision", by_label("revision")}});
  static_cast<void>(
      store.apply(change(StoreChange::ChangeKind::Replace,
                         {pod("a", "1", "x"), pod("b", "2", "y"), pod("c", "3", "x")})));
  EXPECT_EQ(store.find("revision", "x").size(), 2U);
  static_cast<void>(store.apply(change(StoreChange::ChangeKind::Upsert, {pod("a", "4", "y")})));
  EXPECT_EQ(store.find("revision", "x").size(), 1U);
  EXPECT_EQ(store.find("revision", "y").size(), 2U);
  static_cast<void>(store.apply(change(StoreChange::ChangeKind::Erase, {pod("c", "5")})));
  EXPECT_TRUE(store.find("revision", "x").empty());
  EXPECT_EQ(store.list("s").size(), 2U);
  EXPECT_TRUE(store.list("t").empty());
  EXPECT_EQ(store.get({"s", "c"}), nullptr);
}

// A reflector, its store and a fake server that fails at random, on one thread. The clock jumps.
class Trial {
 public:
  explicit Trial(std::uint64_t seed) : rng_(seed), reflector_(rules(), seed) {
    server_.before = [this](const fakes::Call& call) { return trouble(call); };
  }

  void step() {
    now_ += std::chrono::milliseconds(rng_.below(2000));
    change_server();
    if (watch_) return read();
    const Want want = reflector_.next(now_);
    if (const auto* list = std::get_if<WantList>(&want)) {
      auto page =
          server_.list(kPods, {{}, list->resource_version, list->limit, list->continue_from});
      if (!page.ok()) return reflector_.on_list_failed(now_, page.error());
      if (auto all = reflector_.on_list(std::move(*page))) apply(std::move(*all));
    } else if (const auto* watch = std::get_if<WantWatch>(&want)) {
      auto opened = server_.watch(kPods, {{}, watch->resource_version, watch->timeout});
      if (!opened.ok()) return reflector_.on_watch_failed(now_, opened.error());
      watch_ = std::move(*opened);
      reflector_.on_watch_opened(now_);
    }
  }

  // Without further failures, the copy becomes equal to the server.
  void expect_converges() {
    is_calm_ = true;
    for (int i = 0; i < 300; ++i) {
      now_ += std::chrono::seconds(1);
      step();
    }
    std::vector<std::string> want;
    for (const Value& object : server_.objects(kPods)) want.push_back(object.to_text());
    std::vector<std::string> have;
    for (const ObjectPtr& object : store_.list()) have.push_back(object->to_text());
    EXPECT_EQ(have, want);
    std::vector<std::string> told;
    for (const auto& [key, object] : told_) told.push_back(object.to_text());
    EXPECT_EQ(told, want) << "the changes do not add up";
  }

 private:
  static ReflectorOptions rules() {
    ReflectorOptions rules;
    rules.page_objects_max = 3;
    return rules;
  }

  std::optional<client::Failure> trouble(const fakes::Call& call) {
    if (is_calm_ || call.is_write() || rng_.below(4) != 0) return std::nullopt;
    constexpr std::array kReasons = {Reason::Expired, Reason::InternalError,
                                     Reason::TooManyRequests, Reason::ConnectionRefused,
                                     Reason::Unreachable};
    return fakes::api_failure(kReasons.at(rng_.below(kReasons.size())), "trouble");
  }

  void change_server() {
    if (is_calm_) return;
    Value object;
    object.set({"metadata", "name"}, std::string(1, static_cast<char>('a' + rng_.below(8))));
    object.set({"metadata", "namespace"}, "s");
    object.set({"spec", "n"}, static_cast<std::int64_t>(rng_.below(1000)));
    switch (rng_.below(12)) {
      case 0:
        return server_.compact();
      case 1:
        return server_.end_watches();
      case 2:
        return server_.end_watches(fakes::api_failure(Reason::Malformed, "broken"));
      case 3:
        return server_.send_bookmarks();
      case 4:
      case 5:
        static_cast<void>(server_.remove(kPods, object::key_of(object), {}));
        return;
      default:
        server_.put(kPods, object);
    }
  }

  void read() {
    // A watch whose end a failing server never notices.
    if (!is_calm_ && rng_.below(30) == 0) {
      watch_.reset();
      return reflector_.on_watch_ended(now_, fakes::api_failure(Reason::Unreachable, "cut"));
    }
    auto event = watch_->next(Duration::zero());
    if (!event.ok()) {
      watch_.reset();
      return reflector_.on_watch_ended(now_, event.error());
    }
    if (event->what == WatchEvent::EventKind::Silent) return;
    if (event->what == WatchEvent::EventKind::Ended) {
      watch_.reset();
      return reflector_.on_watch_ended(now_, {});
    }
    auto seen = reflector_.on_event(now_, event->type, std::move(event->object));
    if (seen.change) apply(std::move(*seen.change));
    if (seen.is_watch_over) watch_.reset();
  }

  void apply(StoreChange what) {
    for (const Change& one : store_.apply(std::move(what))) {
      if (one.after) {
        EXPECT_EQ(one.before != nullptr, told_.contains(object::key_of(*one.after)));
        told_[object::key_of(*one.after)] = *one.after;
      } else {
        EXPECT_EQ(told_.erase(object::key_of(*one.before)), 1U);
      }
    }
  }

  Rng rng_;
  fakes::FakeApiServer server_;
  Reflector reflector_;
  Store store_;
  std::unique_ptr<client::Watch> watch_;
  std::map<Key, Value> told_;  // the state that a reader of the changes has
  Instant now_{std::chrono::hours(1)};
  bool is_calm_ = false;
};

TEST(ReflectorAndStore, BecomeWhatTheServerHasAfterTroubleOfAllKinds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Trial trial(seed);
    for (int i = 0; i < 400; ++i) trial.step();
    trial.expect_converges();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sightline::reflector
