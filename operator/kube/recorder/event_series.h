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

inline constexpr std::size_t kNoteBytesMax = 1024;
inline constexpr std::size_t kSeriesMax = 4096;
inline constexpr Duration kSeriesRefresh = std::chrono::minutes(30);
inline constexpr Duration kSeriesSilence = std::chrono::minutes(6);

// Something that users are told of about an object.
struct Happening {
  object::Value regarding;  // the object
  bool is_warning = false;
  std::string reason;  // "ScaledUp"
  std::string action;  // "Scale"
  std::string note;    // for people
};

// Who tells.
struct Reporter {
  std::string controller;  // "sightline.dev/operator"
  std::string instance;    // of this process
};

// events.k8s.io/v1.
[[nodiscard]] const object::Resource& event_resource();

// A write: an event that is new, or a merge patch of an older one.
struct EventWrite {
  bool is_new = true;
  object::Key key;
  object::Value body;
  object::Value whole;  // of a patch: the event, for when it is not there any more
};

// Makes one event of equal happenings, by the rules of client-go: the first repetition is written,
// later ones are counted and written every half hour and at the end, which is six minutes of
// silence. Beyond kSeriesMax the oldest series are forgotten. Pure; thread safety: none.
class EventSeries {
 public:
  explicit EventSeries(Reporter reporter) : reporter_(std::move(reporter)) {}

  std::optional<EventWrite> on_happening(Instant now, WallTime wall, const Happening& happening);
  // What time brings: every minute or so.
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

  [[nodiscard]] object::Value event_of(WallTime wall, const Happening& happening) const;
  static EventWrite patch_of(Series& series, Instant now);

  const Reporter reporter_;
  std::map<std::string, Series, std::less<>> series_;
};

}  // namespace sightline::recorder
