// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

#include "operator/kube/object/resource.h"
#include "operator/kube/object/value.h"

namespace sightline::recorder {

// The limits of a note, and of series in memory. Then how often a counted series is written, and
// the silence that ends it.
inline constexpr std::size_t kNoteBytesMax = 1024;
inline constexpr std::size_t kSeriesMax = 4096;
inline constexpr Duration kSeriesRefresh = std::chrono::minutes(30);
inline constexpr Duration kSeriesSilence = std::chrono::minutes(6);

// Something about an object that users should see.
struct ObjectEvent {
  // The object.
  object::Value regarding;
  bool is_warning = false;
  // For example "ScaledUp".
  std::string reason;
  // For example "Scale".
  std::string action;
  // For people.
  std::string note;
};

// Who reports.
struct Reporter {
  // For example "sightline.dev/operator".
  std::string controller;
  // The name of this process.
  std::string instance;
};

// The resource of events, events.k8s.io/v1.
[[nodiscard]] const object::Resource& event_resource();

// A write: a new event, or a merge patch of an earlier one.
struct EventWrite {
  bool is_new = true;
  object::Key key;
  object::Value body;
  // Of a patch: the whole event, in case it does not exist any more.
  object::Value whole;
};

// Combines equal happenings to one event, by the rules of client-go. The first repetition is
// written. Later ones are counted, and written every half hour and at the end, after six minutes of
// silence. Above kSeriesMax the oldest series are dropped. Pure.
// Thread safety: one thread at a time.
class EventSeries {
 public:
  explicit EventSeries(Reporter reporter) : reporter_(std::move(reporter)) {}

  // The write that a happening causes, if any.
  std::optional<EventWrite> on_happening(Instant now, WallTime wall, const ObjectEvent& happening);
  // The writes that are due by time. Call it about every minute.
  std::vector<EventWrite> refresh(Instant now);

 private:
  struct Series {
    object::Value event;
    Instant last{};
    WallTime last_wall{};
    Instant written_at{};
    std::int64_t count = 1;
    std::int64_t written_count = 1;
  };

  [[nodiscard]] object::Value event_of(WallTime wall, const ObjectEvent& happening) const;
  static EventWrite patch_of(Series& series, Instant now);

  const Reporter reporter_;
  std::map<std::string, Series, std::less<>> series_;
};

}  // namespace sightline::recorder
