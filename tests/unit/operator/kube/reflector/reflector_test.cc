// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/reflector/reflector.h"

#include <gtest/gtest.h>

#include "operator/kube/object/metadata.h"
#include "tests/fakes/fake_api_server.h"

namespace sightline::reflector {
namespace {

using client::Reason;
using object::Value;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

Value pod(const std::string& name, int version) {
  Value object;
  object.set({"metadata", "name"}, name);
  object.set({"metadata", "namespace"}, "s");
  object.set({"metadata", "uid"}, "u-" + name);
  object.set({"metadata", "resourceVersion"}, std::to_string(version));
  return object;
}

Value status(int code, const std::string& reason) {
  return Value::object({{"kind", "Status"}, {"code", code}, {"reason", reason}});
}

client::List list_of(const std::string& version, std::vector<Value> items = {}) {
  return {version, {}, std::move(items)};
}

WantList want_list(Reflector& reflector, Instant now) {
  const Want want = reflector.next(now);
  EXPECT_TRUE(std::holds_alternative<WantList>(want)) << want.index();
  const auto* list = std::get_if<WantList>(&want);
  return list != nullptr ? *list : WantList{};
}

WantWatch want_watch(Reflector& reflector, Instant now) {
  const Want want = reflector.next(now);
  EXPECT_TRUE(std::holds_alternative<WantWatch>(want)) << want.index();
  const auto* watch = std::get_if<WantWatch>(&want);
  return watch != nullptr ? *watch : WantWatch{};
}

// How long it waits before its next step. Zero: it does not wait.
Duration waits(Reflector& reflector, Instant now) {
  const Want want = reflector.next(now);
  const auto* wait = std::get_if<WantWait>(&want);
  return wait != nullptr ? wait->until - now : Duration::zero();
}

// A reflector that has listed at version 10 and watches.
Reflector watching(Instant now) {
  Reflector reflector({}, 1);
  static_cast<void>(reflector.next(now));
  EXPECT_TRUE(reflector.on_list(list_of("10")));
  static_cast<void>(reflector.next(now));
  reflector.on_watch_opened(now);
  return reflector;
}

TEST(Reflector, ListsTheCachedStateAndWatchesFromThere) {
  Reflector reflector({}, 1);
  const WantList list = want_list(reflector, kStart);
  EXPECT_EQ(list.resource_version, "0");
  EXPECT_EQ(list.limit, 500U);
  const auto change = reflector.on_list(list_of("10", {pod("a", 3)}));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, StoreChange::ChangeKind::Replace);
  EXPECT_EQ(change->objects.size(), 1U);
  const WantWatch watch = want_watch(reflector, kStart);
  EXPECT_EQ(watch.resource_version, "10");
  EXPECT_GE(watch.timeout, minutes(5));
  EXPECT_LE(watch.timeout, minutes(10));
}

TEST(Reflector, PagesAreOneList) {
  Reflector reflector({}, 1);
  static_cast<void>(reflector.next(kStart));
  EXPECT_FALSE(reflector.on_list({"10", "more", {pod("a", 3)}}));
  EXPECT_EQ(want_list(reflector, kStart).continue_from, "more");
  const auto change = reflector.on_list(list_of("10", {pod("b", 4)}));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->objects.size(), 2U);
}

TEST(Reflector, ExpiredPagesAreListedOnceMoreInOnePiece) {
  Reflector reflector({}, 1);
  static_cast<void>(reflector.next(kStart));
  EXPECT_FALSE(reflector.on_list({"10", "more", {pod("a", 3)}}));
  reflector.on_list_failed(kStart, fakes::api_failure(Reason::Expired, "gone"));
  const WantList list = want_list(reflector, kStart);
  EXPECT_EQ(list.limit, 0U);
  EXPECT_EQ(list.continue_from, "");
  const auto change = reflector.on_list(list_of("11", {pod("a", 3)}));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->objects.size(), 1U);
}

TEST(Reflector, TooLargeListSwitchesToPages) {
  Reflector reflector({}, 1);
  static_cast<void>(reflector.next(kStart));
  reflector.on_list_failed(kStart, fakes::api_failure(Reason::LimitExceeded, "too long"));
  for (int i = 0; i < 2; ++i) {
    const WantList list = want_list(reflector, kStart + i * minutes(1));
    EXPECT_EQ(list.resource_version, "");
    EXPECT_EQ(list.limit, 500U);
    EXPECT_FALSE(reflector.on_list({"10", "more", {pod("a", 3)}}));
    EXPECT_TRUE(reflector.on_list(list_of("10", {pod("b", 4)})));
    reflector.on_watch_failed(kStart, fakes::api_failure(Reason::InternalError, "no"));
  }
  static_cast<void>(want_list(reflector, kStart + minutes(5)));
  reflector.on_list_failed(kStart + minutes(5),
                           fakes::api_failure(Reason::LimitExceeded, "too long"));
  EXPECT_GT(waits(reflector, kStart + minutes(5)), Duration::zero()) << "not even a page";
}

TEST(Reflector, AListThatFailsIsTriedAgainLaterAndLater) {
  Reflector reflector({}, 1);
  Instant now = kStart;
  Duration last{};
  for (int i = 0; i < 12; ++i) {
    static_cast<void>(want_list(reflector, now));
    reflector.on_list_failed(now, fakes::api_failure(Reason::InternalError, "no"));
    last = waits(reflector, now);
    EXPECT_GE(last, milliseconds(800));
    EXPECT_LE(last, seconds(60));
    now += last;
  }
  EXPECT_GE(last, seconds(30));
}

TEST(Reflector, BookmarksAndEventsMoveTheVersionOn) {
  Reflector reflector = watching(kStart);
  const auto added = reflector.on_event(kStart, "ADDED", pod("a", 12));
  EXPECT_EQ(added.change->what, StoreChange::ChangeKind::Upsert);
  EXPECT_EQ(reflector.resource_version(), "12");
  const auto bookmark = reflector.on_event(kStart, "BOOKMARK", pod("", 20));
  EXPECT_FALSE(bookmark.change);
  EXPECT_EQ(reflector.resource_version(), "20");
  const auto deleted = reflector.on_event(kStart, "DELETED", pod("a", 21));
  EXPECT_EQ(deleted.change->what, StoreChange::ChangeKind::Erase);
  EXPECT_TRUE(reflector.on_event(kStart, "INVENTED", pod("a", 99)).is_unknown);
  EXPECT_EQ(reflector.resource_version(), "21");
}

TEST(Reflector, EndedWatchReopensAtTheLastVersion) {
  Reflector reflector = watching(kStart);
  static_cast<void>(reflector.on_event(kStart, "ADDED", pod("a", 12)));
  reflector.on_watch_ended(kStart + minutes(6), {});
  EXPECT_EQ(want_watch(reflector, kStart + minutes(6)).resource_version, "12");
  reflector.on_watch_opened(kStart + minutes(6));
  client::Failure cut;
  cut.reason = Reason::Unreachable;
  reflector.on_watch_ended(kStart + minutes(7), cut);
  EXPECT_EQ(want_watch(reflector, kStart + minutes(7)).resource_version, "12");
}

TEST(Reflector, ShortWatchWithoutEventsCountsAsAFailure) {
  Reflector reflector = watching(kStart);
  reflector.on_watch_ended(kStart + milliseconds(900), {});
  const Duration wait = waits(reflector, kStart + milliseconds(900));
  EXPECT_GE(wait, milliseconds(800));
  EXPECT_EQ(want_list(reflector, kStart + milliseconds(900) + wait).resource_version, "10");
}

TEST(Reflector, BusyOrAbsentServerGetsNoList) {
  for (const Reason reason : {Reason::ConnectionRefused, Reason::TooManyRequests}) {
    Reflector reflector = watching(kStart);
    reflector.on_watch_ended(kStart + minutes(5), {});
    static_cast<void>(want_watch(reflector, kStart + minutes(5)));
    reflector.on_watch_failed(kStart + minutes(5), fakes::api_failure(reason, "no"));
    const Duration wait = waits(reflector, kStart + minutes(5));
    EXPECT_GE(wait, milliseconds(800));
    EXPECT_EQ(want_watch(reflector, kStart + minutes(5) + wait).resource_version, "10");
  }
}

TEST(Reflector, AWatchThatCannotBeOpenedOtherwiseLeadsToAList) {
  Reflector reflector = watching(kStart);
  reflector.on_watch_ended(kStart + minutes(5), {});
  reflector.on_watch_failed(kStart + minutes(5), fakes::api_failure(Reason::Forbidden, "no"));
  const Duration wait = waits(reflector, kStart + minutes(5));
  EXPECT_EQ(want_list(reflector, kStart + minutes(5) + wait).resource_version, "10");
}

TEST(Reflector, AnExpiredVersionIsListedAtAndThenTheNewest) {
  Reflector reflector = watching(kStart);
  EXPECT_TRUE(reflector.on_event(kStart, "ERROR", status(410, "Expired")).is_watch_over);
  const Instant later = kStart + waits(reflector, kStart);
  const WantList list = want_list(reflector, later);
  EXPECT_EQ(list.resource_version, "10");
  EXPECT_EQ(list.limit, 0U);
  reflector.on_list_failed(later, fakes::api_failure(Reason::Expired, "too old"));
  const WantList newest = want_list(reflector, later);
  EXPECT_EQ(newest.resource_version, "");
  EXPECT_EQ(newest.limit, 500U);
  reflector.on_list_failed(later, fakes::api_failure(Reason::Expired, "too old"));
  EXPECT_GT(waits(reflector, later), Duration::zero());
}

TEST(Reflector, AVersionOfTheFutureIsListedAsTheNewest) {
  Reflector reflector = watching(kStart);
  static_cast<void>(reflector.on_event(kStart, "ERROR", status(410, "Expired")));
  const Instant later = kStart + waits(reflector, kStart);
  reflector.on_list_failed(
      later, fakes::api_failure(Reason::Timeout, "no", std::string(client::kVersionTooLarge)));
  EXPECT_EQ(want_list(reflector, later).resource_version, "");
}

TEST(Reflector, BusyErrorsInTheStreamReopenTheWatch) {
  Reflector reflector = watching(kStart);
  EXPECT_TRUE(reflector.on_event(kStart, "ERROR", status(429, "TooManyRequests")).is_watch_over);
  const Instant later = kStart + waits(reflector, kStart);
  EXPECT_GT(later, kStart);
  EXPECT_EQ(want_watch(reflector, later).resource_version, "10");
}

TEST(Reflector, InternalErrorsAreBorneForAMinute) {
  Reflector reflector = watching(kStart);
  Instant now = kStart;
  bool has_listed = false;
  for (int i = 0; i < 20 && !has_listed; ++i) {
    EXPECT_TRUE(reflector.on_event(now, "ERROR", status(500, "InternalError")).is_watch_over);
    now += waits(reflector, now);
    has_listed = std::holds_alternative<WantList>(reflector.next(now));
    if (!has_listed) reflector.on_watch_opened(now);
  }
  EXPECT_TRUE(has_listed);
  EXPECT_GE(now - kStart, minutes(1));
}

TEST(Reflector, ALineThatCannotBeReadLeadsToAList) {
  Reflector reflector = watching(kStart);
  client::Failure broken;
  broken.reason = Reason::Malformed;
  reflector.on_watch_ended(kStart + minutes(3), broken);
  const Duration wait = waits(reflector, kStart + minutes(3));
  static_cast<void>(want_list(reflector, kStart + minutes(3) + wait));
}

TEST(Reflector, SilenceIsBorneForTwoAndAHalfMinutes) {
  Reflector reflector = watching(kStart);
  EXPECT_EQ(reflector.silence_left(kStart), seconds(150));
  static_cast<void>(reflector.on_event(kStart + seconds(100), "BOOKMARK", pod("", 20)));
  EXPECT_EQ(reflector.silence_left(kStart + seconds(200)), seconds(50));
  EXPECT_EQ(reflector.silence_left(kStart + seconds(250)), Duration::zero());
}

TEST(Reflector, FirstEventsOfAWatchWithoutAVersionAreInNoOrder) {
  Reflector reflector({}, 1);
  static_cast<void>(reflector.next(kStart));
  ASSERT_TRUE(reflector.on_list(list_of("")));
  reflector.on_watch_opened(kStart);
  static_cast<void>(reflector.on_event(kStart, "ADDED", pod("a", 30)));
  static_cast<void>(reflector.on_event(kStart, "ADDED", pod("b", 20)));
  EXPECT_EQ(reflector.resource_version(), "");
  static_cast<void>(reflector.on_event(kStart, "MODIFIED", pod("b", 40)));
  EXPECT_EQ(reflector.resource_version(), "40");
}

}  // namespace
}  // namespace sightline::reflector
