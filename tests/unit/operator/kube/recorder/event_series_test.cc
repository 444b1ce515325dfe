// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/recorder/event_series.h"

#include <gtest/gtest.h>

namespace sightline::recorder {
namespace {

using object::Value;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

WallTime wall(Instant now) { return WallTime(now.time_since_epoch()); }

ObjectEvent scaled(const std::string& name, const std::string& note = "to 3") {
  ObjectEvent happening;
  happening.regarding =
      *Value::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                    R"(","namespace":"s","uid":"u","resourceVersion":"7"}})");
  happening.reason = "Scaled";
  happening.action = "Scale";
  happening.note = note;
  return happening;
}

TEST(EventSeries, AnEventSaysWhatHappenedToWhom) {
  EventSeries series({"sightline.dev/operator", "host"});
  const auto write = series.on_happening(kStart, wall(kStart), scaled("a"));
  ASSERT_TRUE(write && write->is_new);
  EXPECT_EQ(write->key, (object::Key{"s", "a.0000034630b8a000"}));
  EXPECT_EQ(write->body["eventTime"].text(), "1970-01-01T01:00:00.000000Z");
  EXPECT_EQ(write->body["type"].text(), "Normal");
  EXPECT_EQ(write->body["reportingInstance"].text(), "host");
  EXPECT_EQ(write->body.at({"regarding", "uid"}).text(), "u");
}

TEST(EventSeries, TheFirstRepetitionIsWrittenAndLaterOnesAreCounted) {
  EventSeries series({"c", "i"});
  static_cast<void>(series.on_happening(kStart, wall(kStart), scaled("a")));
  const auto second = series.on_happening(kStart + seconds(1), wall(kStart), scaled("a", "to 4"));
  ASSERT_TRUE(second && !second->is_new);
  EXPECT_EQ(second->body.at({"series", "count"}).integer(), 2);
  EXPECT_EQ(second->whole["note"].text(), "to 3");
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(series.on_happening(kStart + seconds(2), wall(kStart), scaled("a")));
  }
  EXPECT_TRUE(series.on_happening(kStart, wall(kStart), scaled("b"))->is_new);
  EXPECT_TRUE(series.refresh(kStart + minutes(5)).empty());
  const auto last = series.refresh(kStart + minutes(7));
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].body.at({"series", "count"}).integer(), 12);
  EXPECT_TRUE(series.on_happening(kStart + minutes(8), wall(kStart), scaled("a"))->is_new);
}

TEST(EventSeries, ALongSeriesIsWrittenEveryHalfHour) {
  EventSeries series({"c", "i"});
  std::size_t writes = 0;
  for (int minute = 0; minute <= 120; ++minute) {
    const Instant now = kStart + minutes(minute);
    if (series.on_happening(now, wall(now), scaled("a"))) ++writes;
    writes += series.refresh(now).size();
  }
  EXPECT_EQ(writes, 2U + 3U);
}

TEST(EventSeries, NotesAndSeriesAreBounded) {
  EventSeries series({"c", "i"});
  const auto write = series.on_happening(kStart, wall(kStart), scaled("a", std::string(2000, 'x')));
  EXPECT_EQ(write->body["note"].text().size(), kNoteBytesMax);
  for (std::size_t i = 0; i < kSeriesMax; ++i) {
    static_cast<void>(
        series.on_happening(kStart + seconds(1), wall(kStart), scaled(std::to_string(i))));
  }
  // The first series was dropped.
  EXPECT_TRUE(series.on_happening(kStart + seconds(2), wall(kStart), scaled("a"))->is_new);
}

}  // namespace
}  // namespace sightline::recorder
